//! A value that cannot be read without waiting, and the limits of what waits for such values.

use std::time::Duration;

use bytes::Bytes;

use super::feed_shared::{FeedShared, TypeId};
use crate::clock::Instant;
use crate::storage::StorageError;

/// Maximum number of bytes of the changes of a type that wait for values.
pub(crate) const WAITING_BYTES_MAX: usize = 8 << 20;

/// Maximum time for which a change waits, its own value and those of earlier changes included.
pub(crate) const WAITING_MAX: Duration = Duration::from_secs(10);

/// A request to decrypt a value.
#[derive(Debug)]
pub(crate) struct DecryptionRequest {
    /// The key of the value.
    pub(crate) key: String,
    /// The value as it came.
    pub(crate) value: Bytes,
    /// The instant until which it is waited for. A value that can be read at once is read even later.
    pub(crate) deadline: Instant,
}

/// The answer to the request for a value.
pub(crate) struct ValueAnswer {
    /// The type of the value.
    pub(crate) id: TypeId,
    /// The ticket of the request, which distinguishes it from one for which the type waits no more.
    pub(crate) ticket: u64,
    /// The value, or the reason why it cannot be read now.
    pub(crate) value: Result<Bytes, StorageError>,
}

/// Has a value decrypted.
///
/// # Errors
/// The error of the source; [`StorageError::Timeout`] at the deadline.
pub(crate) async fn decrypt(
    feed: &FeedShared,
    encrypted: DecryptionRequest,
) -> Result<Bytes, StorageError> {
    let DecryptionRequest {
        key,
        value,
        deadline,
    } = encrypted;
    tokio::select! {
        biased;
        value = feed.source.decrypt(&key, value) => value,
        () = feed.clock.sleep_until(deadline) => {
            let seconds = WAITING_MAX.as_secs();
            Err(StorageError::Timeout {
                message: format!("the value of {key} could not be decrypted within {seconds} s"),
            })
        }
    }
}
