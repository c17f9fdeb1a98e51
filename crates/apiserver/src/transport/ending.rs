//! Something that ends once, for very many who ask very often whether it has.
//!
//! Every connection and every watch waits for the end of the server, and is woken for each event. A
//! token alone would take a lock that all of them share, at every wake-up. So the end is also a flag,
//! and a task that waits already only reads that.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A cancellation token that is cheap to ask, for very many tasks that ask very often. Clones end together.
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Set before anybody is woken.
    over: AtomicBool,
    /// Wakes the tasks that wait.
    token: CancellationToken,
}

/// A future that completes at the end.
#[derive(Debug)]
pub struct Ended {
    ending: Ending,
    /// The wait and the waker of the task that polled last; `None` before that.
    waiting: Option<(Pin<Box<WaitForCancellationFutureOwned>>, Waker)>,
}

impl Ending {
    /// Ends it.
    pub fn cancel(&self) {
        // Release: pairs with the Acquire in `is_cancelled`.
        self.0.over.store(true, Ordering::Release);
        self.0.token.cancel();
    }

    /// Returns true if it has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        // Acquire: pairs with the Release in `cancel`.
        self.0.over.load(Ordering::Acquire)
    }

    /// Completes at the end.
    #[must_use = "the end is only waited for when it is polled"]
    pub fn cancelled(&self) -> Ended {
        Ended {
            ending: self.clone(),
            waiting: None,
        }
    }
}

impl Future for Ended {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.ending.is_cancelled() {
            return Poll::Ready(());
        }
        if let Some((_, waker)) = &self.waiting
            && waker.will_wake(context.waker())
        {
            return Poll::Pending;
        }
        let token = self.ending.0.token.clone();
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
        let ending = Ending::default();
        let mut tasks = JoinSet::new();
        for _ in 0..3 {
            let ended = ending.cancelled();
            tasks.spawn(ended);
        }
        tokio::task::yield_now().await;
        ending.cancel();
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic");
        }
        ending.cancelled().await;
    }

    #[tokio::test]
    async fn the_task_that_polled_last_is_woken() {
        let ending = Ending::default();
        let mut ended = ending.cancelled();
        let nobody = noop_waker();
        for _ in 0..2 {
            let polled = pin!(&mut ended).poll(&mut Context::from_waker(&nobody));
            assert!(polled.is_pending());
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(ended);
        tokio::task::yield_now().await;
        ending.cancel();
        tasks.join_next().await.expect("a task").expect("no panic");
    }
}
