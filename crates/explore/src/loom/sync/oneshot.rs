//! A stand-in of tokio's `oneshot` channel.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::{Arc, Mutex, MutexGuard};

/// `tokio::sync::oneshot::Sender`.
#[derive(Debug)]
pub struct Sender<T>(Shared<T>);

/// `tokio::sync::oneshot::Receiver`, a future of what is sent.
#[derive(Debug)]
pub struct Receiver<T>(Shared<T>);

/// The error of a receiver whose sender is gone, as `tokio::sync::oneshot::error::RecvError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

#[derive(Debug)]
struct Shared<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    sent: Option<T>,
    /// True once one of the two ends is gone.
    closed: bool,
    waiting: Option<Waker>,
}

/// Makes the two ends of a channel.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = Arc::new(Mutex::new(State {
        sent: None,
        closed: false,
        waiting: None,
    }));
    (Sender(Shared(Arc::clone(&state))), Receiver(Shared(state)))
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    ///
    /// Gives it back if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(value);
        }
        // The receiver is woken when this is dropped.
        state.sent = Some(value);
        Ok(())
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        if let Some(value) = state.sent.take() {
            return Poll::Ready(Ok(value));
        }
        if state.closed {
            return Poll::Ready(Err(RecvError));
        }
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}
