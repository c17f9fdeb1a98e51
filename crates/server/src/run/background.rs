//! The tasks that a server runs besides its connections, and their end.

use std::time::Duration;

use ringwatch::clock::Clock;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::build::tasks::{TaskThreads, Tasks};

/// Maximum time that tasks may take to end; then they are aborted.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The tasks of a server. They are aborted when it is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    tasks: JoinSet<()>,
    end: CancellationToken,
}

impl Background {
    /// Runs the tasks of all parts. The serving threads are those of the caller.
    pub(crate) fn run(tasks: Tasks, background: &Handle) -> Self {
        let (mut running, end) = (JoinSet::new(), CancellationToken::new());
        for task in tasks {
            tracing::debug!(task = task.name, "started");
            let future = (task.start)(end.clone());
            match task.threads {
                TaskThreads::Background => running.spawn_on(future, background),
                TaskThreads::Serving => running.spawn(future),
            };
        }
        Self {
            tasks: running,
            end,
        }
    }

    /// Tells all tasks to end, and waits for none.
    pub(crate) fn begin_to_stop(&self) {
        self.end.cancel();
    }

    /// Ends all tasks, within a bounded time.
    pub(crate) async fn stop(mut self, clock: &Clock) {
        self.begin_to_stop();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = clock.timeout(END_TIMEOUT, all).await;
        self.tasks.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tasks_run_together_and_end_as_they_were_added() {
        let (mut tasks, mut others) = (Tasks::default(), Tasks::default());
        let (dropped, is_dropped) = oneshot::channel::<()>();
        tasks.background("dropped at the end", async move {
            let _dropped = dropped;
            pending().await
        });
        let (ended, has_ended) = oneshot::channel();
        others.serving_to_its_end("runs to its end", async move |end| {
            end.cancelled().await;
            let _ = ended.send(());
        });
        tasks.append(others);
        let background = Background::run(tasks, &Handle::current());
        background.stop(&Clock::real()).await;
        is_dropped.await.expect_err("dropped");
        has_ended.await.expect("ended by itself");
    }
}
