//! Runs the tasks of an open backend, and closes it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch_tls::error::StartError;
use tokio::runtime::Handle;

use super::background::Background;
use crate::build::backend::{BackendTasks, OpenBackend, OpenOverride};

/// Maximum time that the embedded store may take at the end to write what it has accepted.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A backend that works.
#[derive(Debug)]
pub(crate) struct RunningBackend {
    /// The embedded store, which must be closed.
    embedded: Option<Arc<Embedded>>,
    /// The thread that commits to the database; `None` if there is none to wait for.
    commits: Option<JoinHandle<()>>,
    tasks: Background,
}

impl RunningBackend {
    /// Runs the tasks of a backend. The serving threads are those of the caller.
    ///
    /// # Errors
    /// The system allows no more threads.
    fn run(
        backend: &OpenBackend,
        tasks: BackendTasks,
        background: &Handle,
    ) -> Result<Self, StartError> {
        let commits = tasks.commit_loop.map(|commit_loop| {
            let thread = thread::Builder::new().name("commit".to_owned());
            thread.spawn(move || commit_loop.run())
        });
        let commits = commits.transpose().map_err(|error| {
            let advice = "raise the limit of threads (ulimit -u)";
            StartError::new("start a thread", error, advice)
        })?;
        Ok(Self {
            embedded: backend.embedded.clone(),
            commits,
            tasks: Background::run(tasks.tasks, background),
        })
    }

    /// Runs the tasks of the backend of a server, and of those of some resources alone.
    ///
    /// # Errors
    /// The system allows no more threads.
    pub(crate) fn run_all(
        backend: &OpenBackend,
        tasks: BackendTasks,
        overrides: Vec<OpenOverride>,
        background: &Handle,
    ) -> Result<Vec<Self>, StartError> {
        let mut running = vec![Self::run(backend, tasks, background)?];
        for other in overrides {
            running.push(Self::run(&other.open, other.tasks, background)?);
        }
        Ok(running)
    }

    /// Closes the store once everything that it accepted is written.
    pub(crate) async fn close(self, clock: &Clock) {
        self.tasks.begin_to_stop();
        if let Some(embedded) = self.embedded {
            embedded.close();
        }
        if let Some(commits) = self.commits {
            let joined = tokio::task::spawn_blocking(move || commits.join());
            match clock.timeout(CLOSE_TIMEOUT, joined).await {
                Ok(Ok(Ok(()))) => {}
                Ok(_) => tracing::error!("the thread that commits panicked"),
                Err(_) => {
                    tracing::error!(
                        "the store did not close in time; nothing acknowledged is lost"
                    );
                }
            }
        }
        self.tasks.stop(clock).await;
    }
}
