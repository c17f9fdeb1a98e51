//! What comes after a cache has been followed to an end.

use std::time::Duration;

use crate::registry::Error;
use crate::storage::StorageError;

/// How long after a watch has ended, or could not begin, everything is listed again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The same while the cache is being filled, as it is when the server starts.
const FILLING_PERIOD: Duration = Duration::from_millis(20);

/// Says how following `what` ended, and after how long it is to be begun again.
pub fn pause_after(what: &str, followed: Result<(), Error>) -> Duration {
    match followed {
        Ok(()) => {
            tracing::debug!(what, "a watch ended");
            RETRY_PERIOD
        }
        Err(Error::Storage(StorageError::NotReady { .. })) => FILLING_PERIOD,
        Err(error) => {
            tracing::warn!(%error, "cannot follow {what}");
            RETRY_PERIOD
        }
    }
}
