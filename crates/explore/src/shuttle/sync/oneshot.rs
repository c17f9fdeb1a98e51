//! tokio's `oneshot` channel, each use of which is a step of the schedule.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use tokio::sync::oneshot::error;

use super::Step;

/// `tokio::sync::oneshot::Sender`.
#[derive(Debug)]
pub struct Sender<T> {
    /// `None` once it has sent.
    inner: Option<tokio::sync::oneshot::Sender<T>>,
    step: Step,
}

/// `tokio::sync::oneshot::Receiver`, a future of what is sent.
#[derive(Debug)]
pub struct Receiver<T> {
    inner: tokio::sync::oneshot::Receiver<T>,
    step: Step,
}

/// Makes the two ends of a channel.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = Sender {
        inner: Some(sender),
        step: Step::default(),
    };
    let receiver = Receiver {
        inner: receiver,
        step: Step::default(),
    };
    (sender, receiver)
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    ///
    /// Gives it back if the receiver is gone.
    pub fn send(mut self, value: T) -> Result<(), T> {
        self.step.take();
        match self.inner.take() {
            Some(sender) => sender.send(value),
            None => Err(value),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // The receiver is told that nothing comes.
        if self.inner.is_some() {
            self.step.take_at_the_end();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.step.take();
        Pin::new(&mut self.inner).poll(context)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.step.take_at_the_end();
    }
}
