//! Waiting until the feed has reached a revision.
//!
//! All types share one feed, hence one revision: a change of any type, or a progress notice, takes
//! all of them further. While somebody waits, the feed asks for progress notices, so that a quiet
//! store does not let readers wait for the next write.

use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;

use crate::clock::{Clock, Instant};
use crate::ring::waiters::Published;
use crate::storage::StorageError;

/// How long a read waits for its revision.
pub(super) const FRESHNESS_WAIT_MAX: Duration = Duration::from_secs(3);

/// What a client is told when the wait was in vain.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The feed's revision and those who wait for it.
#[derive(Debug)]
pub(super) struct Freshness {
    published: Published,
    /// Told by each wait that begins.
    wanted: Notify,
    clock: Clock,
}

impl Freshness {
    /// Reads what the feed publishes.
    pub(super) fn new(published: Published, clock: Clock) -> Self {
        Self {
            published,
            wanted: Notify::new(),
            clock,
        }
    }

    /// The revision that all listed types have reached.
    pub(super) fn revision(&self) -> u64 {
        self.published.current()
    }

    /// When a read that begins now gives up.
    pub(super) fn deadline(&self) -> Instant {
        self.clock.now() + FRESHNESS_WAIT_MAX
    }

    /// Waits until the feed has reached `revision`.
    ///
    /// # Errors
    /// [`StorageError::TooLargeResourceVersion`] at the deadline.
    pub(super) async fn wait(&self, revision: u64, deadline: Instant) -> Result<(), StorageError> {
        let mut wait = self.published.wait(revision);
        // The first look registers the wait, so that whoever is told finds it.
        if (&mut wait).now_or_never().is_some() {
            return Ok(());
        }
        self.wanted.notify_one();
        tokio::select! {
            biased;
            _ = wait => Ok(()),
            () = self.clock.sleep_until(deadline) => Err(StorageError::TooLargeResourceVersion {
                requested: revision,
                current: self.revision(),
                retry_after_seconds: RETRY_AFTER_SECONDS,
            }),
        }
    }

    /// Completes when somebody begins to wait.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Whether somebody waits.
    pub(super) fn is_awaited(&self) -> bool {
        self.published.waiting() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::waiters::published;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_the_revision_or_at_the_deadline() {
        let clock = Clock::real();
        let (mut publisher, published) = published(5);
        let fresh = Freshness::new(published, clock.clone());
        fresh.wait(5, fresh.deadline()).await.expect("reached");
        let begun = clock.now();
        let error = fresh.wait(6, fresh.deadline()).await.expect_err("too new");
        assert_eq!(
            error.to_string(),
            "Too large resource version: 6, current: 5"
        );
        assert_eq!(clock.now() - begun, FRESHNESS_WAIT_MAX);
        assert!(!fresh.is_awaited(), "a wait that gave up leaves nothing");
        let (waited, ()) = tokio::join!(fresh.wait(6, fresh.deadline()), async {
            fresh.wanted().await;
            assert!(fresh.is_awaited());
            publisher.publish(7);
        });
        waited.expect("published");
    }
}
