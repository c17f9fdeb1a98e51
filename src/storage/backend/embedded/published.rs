//! The state that readers and watches see. It changes only after the log has made the change durable.

use crate::storage::backend::BackendError;

use super::mvcc::State;

/// Cheap to copy.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) state: State,
    /// The size of the log.
    pub(super) size_bytes: Result<u64, BackendError>,
    /// How much of that is needed, which the quota limits.
    pub(super) used_bytes: u64,
    /// True if a write was refused because of the quota and still would be.
    pub(super) no_space: bool,
    /// The reason why the log takes no writes.
    pub(super) refusal: Option<BackendError>,
    /// How often progress was asked for.
    pub(super) progress_requests: u64,
    /// Nothing will be written any more; watches end when they have told everything.
    pub(super) closed: bool,
}

/// Returns the error of requests to a closed store.
pub(super) fn closed_error() -> BackendError {
    BackendError::Unavailable("the embedded store is closed".to_owned())
}
