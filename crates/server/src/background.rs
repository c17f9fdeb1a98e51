//! The tasks that a server runs besides its connections, and their end.

use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_apiserver::threads::{RuntimeHandles, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum time that tasks may take to end; then they are aborted.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The background tasks of a server. They are aborted when it is dropped.
#[derive(Debug)]
pub(super) struct Background {
    tasks: JoinSet<()>,
    end: CancellationToken,
    runtimes: RuntimeHandles,
}

impl Background {
    /// Creates the set of tasks, empty, for a server with these threads besides the serving ones.
    pub(super) fn new(runtimes: RuntimeHandles) -> Self {
        Self {
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
            runtimes,
        }
    }

    /// Returns the runtimes of the threads besides the serving ones.
    pub(super) fn runtimes(&self) -> &RuntimeHandles {
        &self.runtimes
    }

    /// Returns the token that is cancelled when the tasks are to end.
    pub(super) fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Runs a task whose amount of work clients determine, such as a controller, on the background threads; it is
    /// dropped at the end.
    pub(super) fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.run_to_its_end(until(self.end.clone(), task));
    }

    /// Runs a task on the background threads that ends soon after [`Self::end`] is cancelled.
    pub(super) fn run_to_its_end(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtimes.background);
    }

    /// Runs a task that controllers must not delay on the serving threads, which are those of the caller; it is dropped
    /// at the end.
    pub(super) fn run_serving(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.run_serving_to_its_end(until(self.end.clone(), task));
    }

    /// Runs a task on the serving threads that ends soon after [`Self::end`] is cancelled.
    pub(super) fn run_serving_to_its_end(
        &mut self,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(task);
    }

    /// Ends all tasks, within a bounded time.
    pub(super) async fn stop(mut self, clock: &Clock) {
        self.end.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = clock.timeout(END_TIMEOUT, all).await;
        self.tasks.shutdown().await;
    }
}
