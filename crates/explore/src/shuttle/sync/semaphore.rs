//! tokio's `Semaphore`, each use of which is a step of the schedule.

use tokio::sync::TryAcquireError;

use super::{Arc, Step};

/// `tokio::sync::Semaphore`, with the part of its methods that follows.
#[derive(Debug)]
pub struct Semaphore {
    inner: Arc<tokio::sync::Semaphore>,
    step: Step,
}

/// A permit, which is given back when it is dropped.
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    _inner: tokio::sync::OwnedSemaphorePermit,
    of: Arc<Semaphore>,
}

impl Semaphore {
    /// Makes one of so many permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            inner: Arc::new(tokio::sync::Semaphore::new(permits)),
            step: Step::default(),
        }
    }

    /// Takes a permit, if there is one.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.step.take();
        let permit = Arc::clone(&self.inner).try_acquire_owned()?;
        Ok(OwnedSemaphorePermit {
            _inner: permit,
            of: self,
        })
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        self.of.step.take_at_the_end();
    }
}
