//! What readers and watches see. It changes only after the log has made the change durable.

use crate::storage::backend::BackendError;

use super::mvcc::State;

/// Cheap to copy.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) state: State,
    /// The size of the log.
    pub(super) size_bytes: Result<u64, BackendError>,
    /// How often progress was asked for.
    pub(super) progress_requests: u64,
    /// Nothing will be written any more; watches end when they have told everything.
    pub(super) closed: bool,
}

/// What is answered when the store is closed.
pub(super) fn closed_error() -> BackendError {
    BackendError::Unavailable("the embedded store is closed".to_owned())
}
