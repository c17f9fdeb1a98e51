//! The state that readers and watches see. It is replaced only after the log has made a change durable.

use imbl::OrdMap;

use super::mvcc::State;
use crate::storage::backend::{BackendError, LeaseId};

/// The published state. Clones are cheap: they share the content.
#[derive(Clone, Debug)]
pub(super) struct PublishedState {
    pub(super) state: State,
    /// The leases and their times to live in seconds, at least those that the versions of the state have.
    pub(super) leases: OrdMap<LeaseId, i64>,
    /// The size of the log in bytes.
    pub(super) size_bytes: Result<u64, BackendError>,
    /// The number of bytes of the log that the records need, which the quota limits.
    pub(super) used_bytes: u64,
    /// True if a write was refused because of the quota and would be again.
    pub(super) no_space: bool,
    /// The reason why the log accepts no writes; `None` if it does.
    pub(super) refusal: Option<BackendError>,
    /// The number of requests for progress.
    pub(super) progress_requests: u64,
    /// True if nothing will be written any more; watches end when they have sent every event.
    pub(super) closed: bool,
}

/// Returns the error of requests to a closed store.
pub(super) fn closed_error() -> BackendError {
    BackendError::Unavailable("the embedded store is closed".to_owned())
}
