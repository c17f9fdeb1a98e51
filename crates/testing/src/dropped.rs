//! Dropping a future wherever it waits, as a request is dropped when its client goes.
//!
//! A future can be dropped where it returned `Pending`, so a case shows something only if what it calls does wait:
//! fakes yield before and after what they do.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Maximum number of waits of a future: one that waits for ever is a fault of its case.
const WAITS_MAX: usize = 1_000;

/// Polls a future, and drops it when it waits once more than `waits` times. Returns its output; `None` if it was
/// dropped.
pub async fn dropped_after<F: Future>(waits: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = waits;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Runs a case with a future that is dropped at its first wait, then with one that is dropped at its second, and so on
/// until one ends. The case passes the number that it gets to [`dropped_after`], checks what is left, and returns what
/// that returned.
///
/// # Panics
/// If the future never waits, since nothing was tried then, or has not ended after a thousand waits.
pub async fn at_each_wait<T>(mut case: impl AsyncFnMut(usize) -> Option<T>) -> T {
    for waits in 0..WAITS_MAX {
        if let Some(output) = case(waits).await {
            assert!(waits > 0, "the future never waits");
            return output;
        }
    }
    panic!("the future waits more than {WAITS_MAX} times");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_future_is_dropped_at_each_of_its_waits() {
        let done = Cell::new(0);
        let mut dropped_at = Vec::new();
        let ended = at_each_wait(async |waits| {
            done.set(0);
            let counting = async {
                for _ in 0..3 {
                    yield_now().await;
                    done.set(done.get() + 1);
                }
                "ended"
            };
            let outcome = dropped_after(waits, counting).await;
            dropped_at.push(done.get());
            outcome
        });
        assert_eq!(ended.await, "ended");
        assert_eq!(dropped_at, [0, 1, 2, 3]);
    }

    #[tokio::test]
    #[should_panic(expected = "never waits")]
    async fn a_future_that_does_not_wait_tries_nothing() {
        at_each_wait(async |waits| dropped_after(waits, async {}).await).await;
    }
}
