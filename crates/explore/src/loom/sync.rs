//! loom's primitives under the names of a crate's `sync` module, and some that loom has not.
//!
//! `OnceLock` and `ArcSwap` are built so that loom sees each publication and nothing else. What they keep lies in cells
//! of the standard library that are set once and never changed, so no `unsafe` is needed: what must
//! not be visible yet is hidden by an atomic of loom's.
//!
//! [`Notify`], [`oneshot`] and [`CancellationToken`] do what tokio's do, each under one of loom's locks: what is looked
//! for are the faults of those who use them.

#![allow(
    clippy::disallowed_types,
    reason = "the stand-ins keep in the standard library's what loom must not see"
)]

mod cancellation_token;
mod notify;
pub mod oneshot;

use std::sync::OnceLock as Cell;

pub use ::loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use ::loom::sync::{Arc, Mutex, MutexGuard};

pub use self::cancellation_token::{CancellationToken, WaitForCancellationFutureOwned};
pub use self::notify::Notify;

/// `std::sync::OnceLock`. Who has not acquired that the value was set may find none.
#[derive(Debug)]
pub struct OnceLock<T> {
    /// True once the value may be seen.
    set: AtomicBool,
    value: Cell<T>,
}

impl<T> OnceLock<T> {
    /// Makes a cell that is not set yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            set: AtomicBool::new(false),
            value: Cell::new(),
        }
    }

    /// Sets the value, if none has been set.
    ///
    /// # Errors
    ///
    /// Gives the value back if another was set before.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        // Release: pairs with the Acquire load in `get`, as the standard library's does.
        self.set.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the value, if it is set and the setting can be seen.
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the Release store in `set`.
        let set = self.set.load(Ordering::Acquire);
        set.then(|| self.value.get()).flatten()
    }
}

/// `arc_swap::ArcSwap`, where one thread stores and all load. No value is freed before the whole is.
#[derive(Debug)]
pub struct ArcSwap<T> {
    /// The number of the present value among those stored.
    newest: AtomicUsize,
    /// The number of stored values, less one. For the only thread that stores; loom must not see it.
    stored: std::sync::atomic::AtomicUsize,
    /// All values that were ever stored, in order.
    oldest: Stored<T>,
}

#[derive(Debug)]
struct Stored<T> {
    value: Arc<T>,
    next: Cell<Box<Self>>,
}

/// A stand-in of `arc_swap::Guard`, which [`ArcSwap::load`] returns.
#[derive(Debug)]
pub struct Guard<T>(T);

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ArcSwap<T> {
    /// Makes a cell that holds `value`.
    #[must_use]
    pub fn new(value: Arc<T>) -> Self {
        Self {
            newest: AtomicUsize::new(0),
            stored: std::sync::atomic::AtomicUsize::new(0),
            oldest: Stored::new(value),
        }
    }

    /// Returns the present value, or an older one as far as the orders of this thread's accesses allow.
    pub fn load(&self) -> Guard<Arc<T>> {
        // Acquire: pairs with the Release store in `store`.
        let newest = self.newest.load(Ordering::Acquire);
        Guard(Arc::clone(&self.stored(newest).value))
    }

    /// Makes `value` the present one.
    ///
    /// # Panics
    ///
    /// If two threads store at once.
    pub fn store(&self, value: Arc<T>) {
        let before = self.stored.fetch_add(1, Ordering::Relaxed);
        let next = &self.stored(before).next;
        assert!(next.set(Box::new(Stored::new(value))).is_ok(), "one stores");
        // Release: pairs with the Acquire load in `load`.
        self.newest.store(before + 1, Ordering::Release);
    }

    fn stored(&self, index: usize) -> &Stored<T> {
        let mut stored = &self.oldest;
        for _ in 0..index {
            stored = stored.next.get().expect("what is told of was stored");
        }
        stored
    }
}

impl<T> Stored<T> {
    fn new(value: Arc<T>) -> Self {
        Self {
            value,
            next: Cell::new(),
        }
    }
}

impl<T> std::ops::Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
