//! shuttle's primitives under the names of a crate's `sync` module, and tokio's under those of
//! `tokio::sync`, so that it can stand for both.
//!
//! Each use of [`ArcSwap`] and of [`watch::Sender`] is a step of the schedule. The rest of tokio is the real
//! one: a schedule goes on elsewhere only where a task waits for it.

#![allow(
    clippy::disallowed_types,
    reason = "the stand-ins are made of the real ones"
)]

use std::fmt;

pub use ::shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use ::shuttle::sync::{Arc, Mutex, MutexGuard};
pub use arc_swap::Guard;
pub use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, futures, mpsc, oneshot};

pub mod watch;

/// The standard library's: shuttle has none.
pub type OnceLock<T> = std::sync::OnceLock<T>;

/// Makes each use of a primitive that shuttle does not know a step of the schedule.
#[derive(Debug, Default)]
struct Step(AtomicU64);

impl Step {
    /// Lets another task go first: shuttle may go on elsewhere at every access of an atomic.
    fn take(&self) {
        self.0.load(Ordering::SeqCst);
    }
}

/// The real `ArcSwap`, each use of which is a step of the schedule.
pub struct ArcSwap<T> {
    inner: arc_swap::ArcSwap<T>,
    step: Step,
}

impl<T> ArcSwap<T> {
    /// Makes a cell that holds `value`.
    #[must_use]
    pub fn new(value: Arc<T>) -> Self {
        Self {
            inner: arc_swap::ArcSwap::new(value),
            step: Step::default(),
        }
    }

    /// Holds `value`, in an `Arc` of its own.
    #[must_use]
    pub fn from_pointee(value: T) -> Self {
        Self::new(Arc::new(value))
    }

    /// Returns the present value, which stays valid while the guard is held.
    pub fn load(&self) -> Guard<Arc<T>> {
        self.step.take();
        self.inner.load()
    }

    /// Returns the present value, as an `Arc` that can be kept.
    pub fn load_full(&self) -> Arc<T> {
        self.step.take();
        self.inner.load_full()
    }

    /// Makes `value` the present one.
    pub fn store(&self, value: Arc<T>) {
        self.step.take();
        self.inner.store(value);
    }
}

impl<T: Default> Default for ArcSwap<T> {
    fn default() -> Self {
        Self::from_pointee(T::default())
    }
}

impl<T> fmt::Debug for ArcSwap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcSwap")
    }
}
