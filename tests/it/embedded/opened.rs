//! A store with its commit loop running.

use std::path::Path;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use tokio::task::JoinHandle;

/// An embedded store, in memory or in a file.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<Embedded>,
    /// The thread that writes; none in memory.
    commits: Option<JoinHandle<()>>,
}

impl Opened {
    pub(crate) fn in_memory() -> Self {
        Self::with(None, Clock::real())
    }

    pub(crate) fn at(path: &Path) -> Self {
        Self::with(Some(path), Clock::real())
    }

    /// Opens a store that goes by a clock, in a file if there is a path.
    pub(crate) fn with(path: Option<&Path>, clock: Clock) -> Self {
        let Some(path) = path else {
            return Self {
                store: Arc::new(Embedded::in_memory(clock)),
                commits: None,
            };
        };
        let (store, commits) = Embedded::open(path, clock).unwrap();
        Self {
            store: Arc::new(store),
            commits: Some(tokio::task::spawn_blocking(|| commits.run())),
        }
    }

    /// Closes the store and returns when its file is released.
    pub(crate) async fn close(self) {
        self.store.close();
        if let Some(commits) = self.commits {
            commits.await.unwrap();
        }
    }
}
