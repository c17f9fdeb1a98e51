//! An event of a type, as the window keeps it.

use std::sync::{Arc, PoisonError};

use super::snapshot::{Entry, SnapshotMap};
use crate::clock::Instant;
use crate::meta::{Object, WatchEvent};
use crate::sync::{Mutex, MutexGuard, OnceLock};

/// Estimate of the bytes of an event beside its object: the record, and the map nodes of its state that no other state
/// shares. The events of a batch share most of these and are counted as if they did not, so that a window of many
/// changes holds less memory than it may. Measured as resident memory of 50,000 events that come one by one, these are
/// 265 bytes where objects change in the order of their names or there are 100 of them, 1,770 where 100,000 objects
/// change in any order, and 2,265 with 1,000,000.
const EVENT_OVERHEAD_BYTES: usize = 2_500;

/// A change of one key.
#[derive(Debug)]
pub(crate) struct CacheEvent {
    /// The key that changed.
    pub(crate) key: Arc<str>,
    /// The revision of the change.
    pub(crate) revision: u64,
    /// The content of the key after the event.
    pub(crate) current: Current,
    /// The content of the key before the event; `None` if there was none that could be decoded.
    pub(crate) previous: Option<Arc<Object>>,
    /// The objects of the type after this event; none for most events, see [`super::view`].
    pub(crate) state: KeptState,
    /// The instant at which the event reached the cache.
    pub(crate) received: Instant,
    /// The previous content at this event's revision, for DELETED events; created on first use and then shared.
    pub(crate) removed: OnceLock<Arc<Object>>,
}

/// The state after an event, while it is kept.
#[derive(Debug, Default)]
pub(crate) struct KeptState(Mutex<Option<Arc<SnapshotMap>>>);

/// The content of a key after an event.
#[derive(Debug)]
pub(crate) enum Current {
    /// The object as it is after the event.
    Object(Arc<Object>),
    /// The object was deleted.
    Deleted,
    /// Bytes that are not an object. Watchers are sent nothing until the key holds an object again or is deleted.
    Unreadable,
}

impl KeptState {
    /// Keeps a state.
    pub(crate) fn new(state: SnapshotMap) -> Self {
        Self(Mutex::new(Some(Arc::new(state))))
    }

    /// Returns the state; `None` if there is none, or if it is kept no longer.
    pub(crate) fn get(&self) -> Option<Arc<SnapshotMap>> {
        self.lock().clone()
    }

    /// Keeps the state no longer. Readers that have it keep it alive.
    pub(crate) fn forget(&self) {
        let state = self.lock().take();
        // Dropped outside of the lock: it may be the last owner of many nodes.
        drop(state);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<SnapshotMap>>> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheEvent {
    /// Returns the object of a DELETED event: the previous content, at the revision of the change.
    fn removed(&self, previous: &Object) -> Arc<Object> {
        let make = || Arc::new(previous.at_revision(self.revision));
        Arc::clone(self.removed.get_or_init(make))
    }

    /// Returns the event for a watch, given which of the current and the previous content it selects.
    pub(crate) fn seen(
        &self,
        current: Option<&Arc<Object>>,
        previous: Option<&Arc<Object>>,
    ) -> Option<WatchEvent> {
        match (current, previous) {
            (Some(now), None) => Some(WatchEvent::Added(Arc::clone(now))),
            (Some(now), Some(_)) => Some(WatchEvent::Modified(Arc::clone(now))),
            (None, Some(before)) => Some(WatchEvent::Deleted(self.removed(before))),
            (None, None) => None,
        }
    }

    /// Returns the event for a watch that selects everything.
    pub(crate) fn seen_by_all(&self) -> Option<WatchEvent> {
        let current = match &self.current {
            Current::Unreadable => return None,
            Current::Deleted => None,
            Current::Object(object) => Some(object),
        };
        self.seen(current, self.previous.as_ref())
    }

    /// Applies the event to the objects before it, as its writer did.
    pub(crate) fn apply(&self, state: &mut SnapshotMap) {
        let entry = match &self.current {
            Current::Object(object) => Entry::Readable(Arc::clone(object)),
            Current::Unreadable => Entry::Unreadable {
                last: self.previous.clone(),
            },
            Current::Deleted => {
                state.remove(&self.key);
                return;
            }
        };
        state.insert(Arc::clone(&self.key), entry);
    }

    /// Estimates the bytes that the event keeps alive beside the newest state: the replaced object. The current object
    /// is counted with the state, and once it is replaced, by the event that replaces it.
    pub(crate) fn bytes(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |it| it.stored().len());
        previous + self.key.len() + EVENT_OVERHEAD_BYTES
    }
}
