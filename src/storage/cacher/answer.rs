//! The answer of a cache to a read: from memory, or that the store has to give it.

use crate::storage::StorageError;
use crate::sync::OwnedSemaphorePermit;

/// The cache's answer to a read.
pub(super) enum CacheAnswer<T> {
    /// The answer from memory.
    Here(T),
    /// Only the store can answer. Without one, the read fails with this error.
    AskStore(StorageError),
    /// The cache lags, as this error says. The reader may read from the store as long as it holds the permit.
    Lagging(OwnedSemaphorePermit, StorageError),
}

impl<T> CacheAnswer<T> {
    /// Returns the answer from memory.
    ///
    /// # Errors
    /// The reason why only the store can answer.
    pub(super) fn without_store(self) -> Result<T, StorageError> {
        match self {
            Self::Here(answer) => Ok(answer),
            Self::AskStore(error) | Self::Lagging(_, error) => Err(error),
        }
    }
}

/// Returns the error of a read that a cache without a store cannot answer.
pub(super) fn needs_store(why: &str) -> StorageError {
    StorageError::Internal {
        message: format!("the watch cache cannot answer without a store: {why}"),
    }
}
