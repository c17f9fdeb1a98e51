//! The real `ArcSwap`, each use of which is a step of the schedule.

use std::fmt;

use arc_swap::Guard;

use super::{Arc, Step};

/// `arc_swap::ArcSwap`, with the part of its methods that follows.
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
