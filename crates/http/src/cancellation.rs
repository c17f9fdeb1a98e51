//! A cancellation token with a lock-free fast path.
//!
//! Every connection and every watch waits for the end of the server, and is woken for each event. A
//! token alone would take a lock that all of them share, at every wake-up. So the cancellation is also
//! a flag, and a task that waits already only reads that.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ringwatch::sync::{AtomicBool, Ordering};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A cancellation token with a lock-free fast path, for tasks that poll it at every wake-up. Clones are cancelled
/// together.
#[derive(Clone, Debug, Default)]
pub struct CancellationFlag(Arc<FlagState>);

#[derive(Debug, Default)]
struct FlagState {
    /// True once cancelled; set before the waiting tasks are woken.
    cancelled: AtomicBool,
    /// Wakes the tasks that wait.
    token: CancellationToken,
}

/// The future of [`CancellationFlag::cancelled`], which completes once the flag is cancelled.
#[derive(Debug)]
pub struct Cancelled {
    flag: CancellationFlag,
    /// The wait and the waker of the task that polled last; `None` before that.
    waiting: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Waker)>,
}

impl CancellationFlag {
    /// Cancels it, and wakes every task that waits.
    pub fn cancel(&self) {
        // Release: pairs with the Acquire in `is_cancelled`.
        self.0.cancelled.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Returns true once it is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release in `cancel`.
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Completes once it is cancelled.
    #[must_use = "the future does nothing unless it is polled"]
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            flag: self.clone(),
            waiting: None,
        }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.flag.is_cancelled() {
            return Poll::Ready(());
        }
        if let Some((_, waker)) = &self.waiting
            && waker.will_wake(context.waker())
        {
            return Poll::Pending;
        }
        let token = self.flag.0.token.clone();
        let mut waiting = Box::pin(token.cancelled_owned());
        if waiting.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        self.waiting = Some((waiting, context.waker().clone()));
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::task::noop_waker;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn all_who_wait_are_woken() {
        let flag = CancellationFlag::default();
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            let ended = flag.cancelled();
            tasks.spawn(ended);
        }
        tokio::task::yield_now().await;
        flag.cancel();
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic");
        }
        flag.cancelled().await;
    }

    #[tokio::test]
    async fn the_task_that_polled_last_is_woken() {
        let flag = CancellationFlag::default();
        let mut ended = flag.cancelled();
        let nobody = noop_waker();
        for _ in 0..2 {
            let polled = pin!(&mut ended).poll(&mut Context::from_waker(&nobody));
            assert!(polled.is_pending());
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(ended);
        tokio::task::yield_now().await;
        flag.cancel();
        tasks.join_next().await.expect("a task").expect("no panic");
    }
}
