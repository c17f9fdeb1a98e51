//! tokio's `watch` channel. Each use of the sender is a step of the schedule.

use super::Step;

pub use tokio::sync::watch::{Receiver, Ref};

/// `tokio::sync::watch::Sender`, with the part of its methods that follows.
#[derive(Debug)]
pub struct Sender<T> {
    inner: tokio::sync::watch::Sender<T>,
    step: Step,
}

impl<T> Sender<T> {
    /// Makes a sender without receivers.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            inner: tokio::sync::watch::Sender::new(value),
            step: Step::default(),
        }
    }

    /// Returns the value that was sent last.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.step.take();
        self.inner.borrow()
    }

    /// Changes the value and wakes every receiver.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.step.take();
        self.inner.send_modify(modify);
    }

    /// Returns a receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.step.take();
        self.inner.subscribe()
    }
}
