//! Values that are derived from stored objects and kept up to date.

use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use tokio::sync::watch;

/// Maximum time that a request waits for objects that have not been read yet, at the start of the server.
const FIRST_MAX: Duration = Duration::from_secs(10);

/// The values derived from all stored objects of a type, as of the last change.
#[derive(Debug)]
pub struct ParsedObjects<T> {
    /// `None` until the objects have been read.
    values: watch::Sender<Option<Arc<[Arc<T>]>>>,
    clock: Clock,
}

impl<T> ParsedObjects<T> {
    /// Makes values that are not known yet, for which requests wait by this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            values: watch::Sender::new(None),
            clock,
        }
    }

    /// Replaces the values, and wakes the requests that wait for the first.
    pub fn set(&self, all: Vec<Arc<T>>) {
        self.values.send_replace(Some(all.into()));
    }

    /// Waits until the objects have been read.
    pub async fn known(&self) {
        // The sender lives as long as this.
        let _ = self.values.subscribe().wait_for(Option::is_some).await;
    }

    /// Returns the current values; `None` if the objects were not read in time.
    pub async fn get(&self) -> Option<Arc<[Arc<T>]>> {
        if let Some(all) = &*self.values.borrow() {
            return Some(Arc::clone(all));
        }
        let mut receiver = self.values.subscribe();
        let first = receiver.wait_for(Option::is_some);
        let first = self.clock.timeout(FIRST_MAX, first).await;
        first.ok()?.ok()?.clone()
    }
}
