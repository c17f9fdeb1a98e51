//! tokio's `Notify`, each use of which is a step of the schedule.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Step;

/// `tokio::sync::Notify`, with the part of its methods that follows.
#[derive(Debug, Default)]
pub struct Notify {
    inner: tokio::sync::Notify,
    step: Step,
}

/// The future of [`Notify::notified`].
#[derive(Debug)]
pub struct Notified<'a> {
    inner: Pin<Box<tokio::sync::futures::Notified<'a>>>,
    step: &'a Step,
}

impl Notify {
    /// Makes one that nobody has notified.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes one waiting task, or completes the next wait at once.
    pub fn notify_one(&self) {
        self.step.take();
        self.inner.notify_one();
    }

    /// Waits for a notification.
    pub fn notified(&self) -> Notified<'_> {
        self.step.take();
        Notified {
            inner: Box::pin(self.inner.notified()),
            step: &self.step,
        }
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.step.take();
        self.inner.as_mut().poll(context)
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        // One that was notified and not polled since hands its notification on.
        self.step.take_at_the_end();
    }
}
