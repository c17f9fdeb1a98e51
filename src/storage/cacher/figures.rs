//! The figures of a feed and of its types, gathered when somebody asks for them.
//!
//! Nothing is counted for this alone, except the reads that wait: the rest is read from what readers of the cache see,
//! and from the metrics. So the figures are of slightly different moments, and the events of a type wait for none of
//! them.

use std::sync::Arc;
use std::time::Duration;

use super::dispatch::watch_cache::WatchCache;
use super::feed::Feed;
use super::window::event_window::{WINDOW_AGE_MIN, WindowLimits};
use crate::storage::StorageError;

/// The figures of one type of a feed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypeFigures {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural resource.
    pub resource: String,
    /// True if the cache can answer reads.
    pub ready: bool,
    /// The number of objects, those that cannot be read included.
    pub objects: usize,
    /// The bytes of the objects, as the memory budget counts them.
    pub object_bytes: u64,
    /// The window of the newest events.
    pub window: WindowFill,
    /// The changes that came from the store so far.
    pub changes: u64,
    /// The revision of the last change, or of the list if there was none since.
    pub revision: u64,
    /// The open watches, those of the server itself included.
    pub watchers: u64,
    /// The reads that wait for a revision.
    pub waiting: usize,
    /// The time for which the first of them has waited.
    pub longest_wait: Duration,
}

/// The content of a window, and its limits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WindowFill {
    /// The number of events.
    pub events: u64,
    /// The number of those that are dropped first when memory is short.
    pub spare: u64,
    /// The bytes that the events keep alive beside the newest objects.
    pub bytes: u64,
    /// The age of the oldest event; `None` if there is none.
    pub oldest: Option<Duration>,
    /// The limits of the window.
    pub limits: WindowLimits,
}

impl Feed {
    /// Returns the figures of all types, in no particular order. It takes time that grows with the number of types
    /// alone.
    #[must_use]
    pub fn figures(&self) -> Vec<TypeFigures> {
        self.shared().present().iter().map(figures).collect()
    }

    /// Returns the revision that all types have reached.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared().fresh().revision()
    }

    /// Asks the store for its newest revision, within the time of a read. The readers that need it at that moment share
    /// the request.
    ///
    /// # Errors
    /// As for a read of the newest objects: the store's error, or that it did not answer in time.
    pub async fn store_revision(&self) -> Result<u64, StorageError> {
        let fresh = self.shared().fresh();
        let deadline = fresh.deadline();
        self.shared().newest_revision(&fresh, deadline).await
    }
}

/// Returns the figures of a type.
fn figures(cache: &Arc<WatchCache>) -> TypeFigures {
    let now = cache.clock.now();
    let view = cache.view();
    let state = view.state();
    let age = |received| now.saturating_duration_since(received);
    let (first, end) = (view.first(), view.end());
    let oldest = view.events(first).next().map(|it| age(it.received));
    let (waiting, longest_wait) = cache.waiting.figures(now);
    let metrics = &cache.metrics;
    TypeFigures {
        group: cache.config.group.clone(),
        resource: cache.config.resource.clone(),
        ready: cache.readiness().is_ready(),
        objects: state.len(),
        object_bytes: state.bytes(),
        window: WindowFill {
            events: end - first,
            spare: view.received_before(|received| age(received) > WINDOW_AGE_MIN) - first,
            bytes: metrics.engine.window_bytes(),
            oldest,
            limits: cache.config.window,
        },
        changes: metrics.events_received.get(),
        revision: view.revision(),
        watchers: metrics.engine.open_watchers(),
        waiting,
        longest_wait,
    }
}
