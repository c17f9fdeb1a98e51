//! The options of the [`super::Interface`]'s methods.

use std::sync::Arc;

use super::{Preconditions, SelectionPredicate};
use crate::budget::Ledger;
use crate::clock::Instant;
use crate::meta::{Object, ResourceVersion, VersionMatch};

/// How to read one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetOptions {
    /// Unset: the newest; 0: any; otherwise not older than this.
    pub resource_version: Option<ResourceVersion>,
}

/// How to list or watch.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Unset: the newest; 0: any; otherwise as `version_match` says.
    pub resource_version: Option<ResourceVersion>,
    /// How the version binds a list. Unset with a version: not older, or exact with a limit.
    pub version_match: Option<VersionMatch>,
    /// The selection, and the page size.
    pub predicate: SelectionPredicate,
    /// Everything under the key, rather than the key alone.
    pub recursive: bool,
    /// True if a watch begins with the current state and a bookmark after it; see KEP-3157.
    pub send_initial_events: Option<bool>,
    /// True if a watch of an uncached store reports progress as bookmarks.
    pub progress_notify: bool,
    /// When the watch will be ended by its caller, for a last bookmark shortly before.
    pub deadline: Option<Instant>,
    /// True if a list skips objects that cannot be read, and names them; otherwise it is refused.
    pub skip_corrupt: bool,
    /// The ledger that a list asks for the memory of objects that it has for itself, before it reads them. Unset: nobody is
    /// asked.
    pub memory: Option<Ledger>,
}

/// The options of an update.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Call the function without content if there is no object, and create what it returns.
    pub ignore_not_found: bool,
    /// Conditions on the current content.
    pub preconditions: Preconditions,
    /// Content to try first, which saves a read if it is current.
    pub cached_existing: Option<Arc<Object>>,
}

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Conditions on the current content.
    pub preconditions: Preconditions,
    /// Content to try first, which saves a read if it is current.
    pub cached_existing: Option<Arc<Object>>,
    /// Delete what cannot be decoded, and only that (KEP-3926).
    pub expect_decode_error: bool,
}
