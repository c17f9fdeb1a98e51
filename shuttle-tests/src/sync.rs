//! shuttle's primitives under the names of the production crate's `sync`, and tokio's under those
//! of tokio's.

use std::fmt;
pub use std::sync::OnceLock;

pub use arc_swap::Guard;
pub use real_tokio::sync::{
    Notify, OwnedSemaphorePermit, Semaphore, futures, mpsc, oneshot, watch,
};
pub use shuttle::sync::atomic::{AtomicU64, Ordering};
pub use shuttle::sync::{Arc, Mutex, MutexGuard};

/// The real `ArcSwap`, each use of which is a step of the schedule.
pub struct ArcSwap<T> {
    inner: arc_swap::ArcSwap<T>,
    /// Touched before each use: shuttle may go on elsewhere at every access of an atomic.
    step: AtomicU64,
}

impl<T> ArcSwap<T> {
    pub fn new(value: Arc<T>) -> Self {
        Self {
            inner: arc_swap::ArcSwap::new(value),
            step: AtomicU64::new(0),
        }
    }

    pub fn from_pointee(value: T) -> Self {
        Self::new(Arc::new(value))
    }

    pub fn load(&self) -> Guard<Arc<T>> {
        self.step.load(Ordering::SeqCst);
        self.inner.load()
    }

    pub fn load_full(&self) -> Arc<T> {
        self.step.load(Ordering::SeqCst);
        self.inner.load_full()
    }

    pub fn store(&self, value: Arc<T>) {
        self.step.store(0, Ordering::SeqCst);
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
