//! A stand-in of `tokio_util`'s cancellation token.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::{Arc, Mutex, MutexGuard};

/// `tokio_util::sync::CancellationToken`, with the part of its methods that follows. Clones are cancelled together.
#[derive(Clone, Debug)]
pub struct CancellationToken(Arc<Mutex<State>>);

/// The future of [`CancellationToken::cancelled_owned`].
#[derive(Debug)]
pub struct WaitForCancellationFutureOwned(CancellationToken);

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    waiting: Vec<Waker>,
}

impl CancellationToken {
    /// Makes one that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State::default())))
    }

    /// Cancels it, and wakes all that wait.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Completes once it is cancelled.
    #[must_use = "the future does nothing unless it is polled"]
    pub fn cancelled_owned(self) -> WaitForCancellationFutureOwned {
        WaitForCancellationFutureOwned(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl Future for WaitForCancellationFutureOwned {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.cancelled {
            return Poll::Ready(());
        }
        state.waiting.push(context.waker().clone());
        Poll::Pending
    }
}
