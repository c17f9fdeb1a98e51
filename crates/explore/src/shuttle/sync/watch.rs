//! tokio's `watch` channel, each use of which is a step of the schedule.
//!
//! tokio has a lock around the value. Whoever waited for it inside tokio would stop all tasks at once, so a lock of
//! shuttle's is held around each use of it.

use std::ops::Deref;

use ::shuttle::sync::{RwLock, RwLockReadGuard};
pub use tokio::sync::watch::error;

use super::Arc;

/// `tokio::sync::watch::Sender`, with the part of its methods that follows.
#[derive(Debug)]
pub struct Sender<T> {
    inner: tokio::sync::watch::Sender<T>,
    lock: Arc<RwLock<()>>,
}

/// `tokio::sync::watch::Receiver`, with the part of its methods that follows.
#[derive(Clone, Debug)]
pub struct Receiver<T> {
    inner: tokio::sync::watch::Receiver<T>,
    lock: Arc<RwLock<()>>,
}

/// A look at the value, which does not change meanwhile.
#[derive(Debug)]
pub struct Ref<'a, T> {
    value: tokio::sync::watch::Ref<'a, T>,
    _unchanged: RwLockReadGuard<'a, ()>,
}

impl<T> Sender<T> {
    /// Makes a sender without receivers.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            inner: tokio::sync::watch::Sender::new(value),
            lock: Arc::default(),
        }
    }

    /// Returns the value that was sent last.
    pub fn borrow(&self) -> Ref<'_, T> {
        let unchanged = look(&self.lock);
        Ref {
            value: self.inner.borrow(),
            _unchanged: unchanged,
        }
    }

    /// Changes the value and wakes every receiver.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        let _changing = self.lock.write();
        self.inner.send_modify(modify);
    }

    /// Returns a receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        let _unchanged = look(&self.lock);
        Receiver {
            inner: self.inner.subscribe(),
            lock: Arc::clone(&self.lock),
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for a value that fits; the present one is looked at first.
    ///
    /// # Errors
    ///
    /// If the sender is gone, and its last value does not fit.
    pub async fn wait_for(
        &mut self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, error::RecvError> {
        loop {
            let unchanged = look(&self.lock);
            if fits(&self.inner.borrow_and_update()) {
                // It has been seen, and does not change before the lock is given back.
                return Ok(Ref {
                    value: self.inner.borrow(),
                    _unchanged: unchanged,
                });
            }
            drop(unchanged);
            self.inner.changed().await?;
        }
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

fn look(lock: &RwLock<()>) -> RwLockReadGuard<'_, ()> {
    // It guards nothing that a panic could spoil.
    lock.read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
