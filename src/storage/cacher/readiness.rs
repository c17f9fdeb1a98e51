//! Whether a type can be served from memory.

use std::time::Duration;

use crate::clock::Instant;
use crate::storage::StorageError;

/// How soon a client may come back at least, and at most.
const RETRY_AFTER_SECONDS: (f64, f64) = (1.0, 30.0);

/// How fast the retry time grows with the time that the cache has been down.
const RETRY_GROWTH_PER_SECOND: f64 = 0.06;

/// The state of a type's cache.
#[derive(Clone, Debug)]
pub enum Readiness {
    /// The type is being listed.
    Pending {
        /// Since when.
        since: Instant,
        /// Why the last attempt failed.
        reason: Option<String>,
    },
    /// The type is served.
    Ready {
        /// How often the cache has been filled, this time included.
        generation: u64,
    },
    /// The feed has ended.
    Stopped,
}

impl Readiness {
    /// Whether the type can be served.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    /// What a request that needs the cache is told at `now`.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] unless ready; the longer it takes, the later to retry.
    pub fn check(&self, now: Instant) -> Result<(), StorageError> {
        match self {
            Self::Ready { .. } => Ok(()),
            Self::Pending { since, reason } => Err(StorageError::NotReady {
                reason: reason.clone(),
                retry_after_seconds: retry_after(now.saturating_duration_since(*since)),
            }),
            Self::Stopped => Err(StorageError::NotReady {
                reason: Some("the watch cache has stopped".to_owned()),
                retry_after_seconds: 1,
            }),
        }
    }
}

/// kube-apiserver's formula.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value lies between 1 and 30"
)]
fn retry_after(down: Duration) -> u32 {
    let (least, most) = RETRY_AFTER_SECONDS;
    let seconds = (RETRY_GROWTH_PER_SECOND * down.as_secs_f64()).exp();
    seconds.clamp(least, most) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_time_grows_with_the_down_time() {
        let after = |seconds| retry_after(Duration::from_secs(seconds));
        assert_eq!([0, 11, 12, 30, 60, 3600].map(after), [1, 1, 2, 6, 30, 30]);
    }
}
