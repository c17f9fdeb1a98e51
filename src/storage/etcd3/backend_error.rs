//! The conversion of a backend's errors into a store's.

use crate::storage::StorageError;
use crate::storage::backend::BackendError;

/// The conversion for operations other than lists and watches, which know the requested revision and convert errors
/// themselves.
impl From<BackendError> for StorageError {
    fn from(error: BackendError) -> Self {
        let message = error.to_string();
        match error {
            BackendError::Compacted { .. } => Self::ListExpired,
            BackendError::FutureRevision { current } => Self::TooLargeResourceVersion {
                requested: current.saturating_add(1),
                current,
                retry_after_seconds: 0,
            },
            BackendError::Unavailable(_) | BackendError::ReadOnly(_) => {
                Self::Unreachable { message }
            }
            BackendError::NoSpace => Self::NoSpace { message },
            BackendError::Timeout(_) => Self::Timeout { message },
            BackendError::TooLarge(_) => Self::TooLarge { message },
            BackendError::LeaseNotFound | BackendError::Corrupt(_) | BackendError::Other(_) => {
                Self::Internal { message }
            }
        }
    }
}
