//! Values that are derived from stored objects and kept up to date.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How long a request waits for objects that have not been read yet, at the start of the server.
const FIRST_MAX: Duration = Duration::from_secs(10);

/// The values derived from all stored objects of a type, as of the last change.
#[derive(Debug)]
pub struct Followed<T>(watch::Sender<Option<Arc<[Arc<T>]>>>);

impl<T> Default for Followed<T> {
    fn default() -> Self {
        Self(watch::channel(None).0)
    }
}

impl<T> Followed<T> {
    /// From now on it is this.
    pub fn set(&self, all: Vec<Arc<T>>) {
        self.0.send_replace(Some(all.into()));
    }

    /// Returns the current values; `None` if the objects were not read in time.
    pub async fn get(&self) -> Option<Arc<[Arc<T>]>> {
        if let Some(all) = &*self.0.borrow() {
            return Some(Arc::clone(all));
        }
        let mut receiver = self.0.subscribe();
        let first = receiver.wait_for(Option::is_some);
        let first = tokio::time::timeout(FIRST_MAX, first).await;
        first.ok()?.ok()?.clone()
    }
}
