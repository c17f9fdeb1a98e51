//! A stand-in of tokio's `Notify`, for which one task waits.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

use super::{Mutex, MutexGuard};

/// `tokio::sync::Notify`, with the part of its methods that follows. One task waits at a time.
#[derive(Debug)]
pub struct Notify(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// True if the next wait is over at once.
    notified: bool,
    /// The task that waits.
    waiting: Option<Waker>,
}

impl Notify {
    /// Makes one that nobody has notified.
    #[must_use]
    pub fn new() -> Self {
        Self(Mutex::new(State::default()))
    }

    /// Wakes the waiting task, or completes the next wait at once.
    pub fn notify_one(&self) {
        let mut state = self.lock();
        state.notified = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for a notification.
    pub async fn notified(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if std::mem::take(&mut state.notified) {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}
