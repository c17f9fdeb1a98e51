//! The tasks that the parts of a server need, which nothing runs before the server is whole.

use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringwatch_filters::threads::until;
use tokio_util::sync::CancellationToken;

/// A task that has not been started.
pub(crate) struct Task {
    /// The name, for the log.
    pub(crate) name: &'static str,
    /// The threads that run it.
    pub(crate) threads: TaskThreads,
    /// Returns the future, which ends soon after the token is cancelled.
    pub(crate) start: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>,
}

/// The threads that run a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskThreads {
    /// The threads of tasks whose amount of work clients determine, such as controllers.
    Background,
    /// The threads that serve connections, for tasks that controllers must not delay.
    Serving,
}

/// The tasks of a part, in the order in which they are to be started.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Vec<Task>);

impl Tasks {
    /// Adds a task on the background threads, which is dropped at the end.
    pub(crate) fn background(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.background_to_its_end(name, |end| until(end, task));
    }

    /// Adds a task on the background threads, which ends by itself once its token is cancelled.
    pub(crate) fn background_to_its_end<F>(
        &mut self,
        name: &'static str,
        start: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(name, TaskThreads::Background, start);
    }

    /// Adds a task on the serving threads, which is dropped at the end.
    pub(crate) fn serving(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.serving_to_its_end(name, |end| until(end, task));
    }

    /// Adds a task on the serving threads, which ends by itself once its token is cancelled.
    pub(crate) fn serving_to_its_end<F>(
        &mut self,
        name: &'static str,
        start: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.add(name, TaskThreads::Serving, start);
    }

    /// Adds the tasks of another part.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    fn add<F>(
        &mut self,
        name: &'static str,
        threads: TaskThreads,
        start: impl FnOnce(CancellationToken) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let start = Box::new(|end| start(end).boxed());
        self.0.push(Task {
            name,
            threads,
            start,
        });
    }
}

impl IntoIterator for Tasks {
    type Item = Task;
    type IntoIter = std::vec::IntoIter<Task>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {:?}", self.name, self.threads)
    }
}
