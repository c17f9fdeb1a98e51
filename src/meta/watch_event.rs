//! The events of a watch.

use std::sync::Arc;

use super::Object;

/// One event of a watch. A watch that fails ends with an error beside these, after which nothing follows.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object came into the watch's selection.
    Added(Arc<Object>),
    /// The object changed within the selection.
    Modified(Arc<Object>),
    /// The object changed within the selection. Sent instead of [`WatchEvent::Modified`] to watches that want to see
    /// what objects were before.
    Replaced {
        /// The object as it is now.
        object: Arc<Object>,
        /// The object before, at the revision that wrote it.
        previous: Arc<Object>,
    },
    /// The object left the selection: its last selected content, with the revision of the change
    /// that took it out.
    Deleted(Arc<Object>),
    /// Everything up to this revision has been delivered.
    Bookmark {
        /// The revision that the watch has reached.
        revision: u64,
        /// True at the end of the initial state that `sendInitialEvents` requests.
        initial_events_end: bool,
    },
}

impl WatchEvent {
    /// Returns the revision from which a client resumes after this event.
    #[must_use]
    pub fn revision(&self) -> u64 {
        match self {
            Self::Added(object)
            | Self::Modified(object)
            | Self::Replaced { object, .. }
            | Self::Deleted(object) => object.revision(),
            Self::Bookmark { revision, .. } => *revision,
        }
    }
}
