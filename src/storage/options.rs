//! The options of the [`super::Interface`]'s methods.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Preconditions, SelectionPredicate};
use crate::budget::Ledger;
use crate::clock::Instant;
use crate::meta::{Object, ResourceVersion, VersionMatch};

/// The options of reading one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetOptions {
    /// Unset: the newest; 0: any; otherwise not older than this.
    pub resource_version: Option<ResourceVersion>,
}

/// The options of a list or a watch.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Unset: the newest; 0: any; otherwise as `version_match` says.
    pub resource_version: Option<ResourceVersion>,
    /// The meaning of the version for a list. Unset with a version: not older, or exact with a limit.
    pub version_match: Option<VersionMatch>,
    /// The selection, and the page size.
    pub predicate: SelectionPredicate,
    /// True if the caller itself selects among what is listed, so that it may read many pages for one.
    pub selects_later: bool,
    /// True for everything under the key, false for the key alone.
    pub recursive: bool,
    /// True if a watch begins with the current state and a bookmark after it; see KEP-3157.
    pub send_initial_events: Option<bool>,
    /// True if a watch says what changed objects were before, see [`WatchEvent::Replaced`](crate::meta::WatchEvent).
    pub with_previous: bool,
    /// True if a watch of an uncached store reports progress as bookmarks.
    pub progress_notify: bool,
    /// The time at which the caller will end the watch, so that a last bookmark can be sent shortly before, see
    /// [`BOOKMARK_BEFORE_DEADLINE`](crate::storage::cacher::BOOKMARK_BEFORE_DEADLINE).
    pub deadline: Option<Instant>,
    /// Is shown the place of a watch that a cache serves. Unset: nobody looks at it.
    pub observer: Option<Arc<dyn WatchObserver>>,
    /// True if a list skips objects that cannot be read and names their keys; otherwise it fails.
    pub skip_corrupt: bool,
    /// The ledger that counts the objects which a list alone holds, before it reads them, and may refuse them. Unset:
    /// they are not counted.
    pub memory: Option<Ledger>,
}

/// Is shown the place of a watch of a cache when it begins, to look at it whenever it likes.
pub trait WatchObserver: Debug + Send + Sync {
    /// Takes the place of the watch. It is called once at most.
    fn begins(&self, place: Arc<dyn WatchProgress>);
}

/// The place of a watch in the history of its type, as seen from outside: looking costs the watch nothing.
pub trait WatchProgress: Debug + Send + Sync {
    /// Returns the group and the plural resource of the type that is watched.
    fn of_type(&self) -> (&str, &str);

    /// Returns how far behind the watch is now.
    fn lag(&self) -> WatchLag;
}

/// The distance of a watch from the newest event of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchLag {
    /// The number of events from the first that the watch has not looked at to the newest of its type.
    pub events: u64,
    /// True if its channel has overflowed, so that it reads the window.
    pub parked: bool,
}

/// The options of an update.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// True if the function is called without content when there is no object, and what it returns is created.
    pub ignore_not_found: bool,
    /// Conditions on the current content.
    pub preconditions: Preconditions,
    /// The content to try first; saves a read if it is current.
    pub cached_existing: Option<Arc<Object>>,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Conditions on the current content.
    pub preconditions: Preconditions,
    /// The content to try first; saves a read if it is current.
    pub cached_existing: Option<Arc<Object>>,
    /// True to delete an object only if it cannot be decoded (KEP-3926).
    pub expect_decode_error: bool,
}
