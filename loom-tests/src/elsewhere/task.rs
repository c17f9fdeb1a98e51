//! tokio's `task`, as far as the included files use it.

use std::future::poll_fn;
use std::task::Poll;

/// Lets other tasks go first: the task is woken at once, and goes on when it is polled again.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
