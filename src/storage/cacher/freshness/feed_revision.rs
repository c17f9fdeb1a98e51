//! Waiting until the feed has reached a revision.
//!
//! All types share one feed, hence one revision: a change of any type, or a progress notice, raises the revision of all
//! of them. While a reader waits, the feed requests progress notices, so that readers of a quiet store do not wait for
//! the next write.
//!
//! # One history
//!
//! The revision never falls. A [`Freshness`] belongs to one history of the store: when the store was restored from a
//! backup, that history is over for good, its waiters receive an error, and its [`Freshness::successor`] begins at 0.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::clock::{Clock, Instant};
use crate::ring::waiters::PublishedNumber;
use crate::storage::StorageError;
use crate::sync::{Notify, OnceLock};

/// Maximum time that a read waits for its revision.
pub(crate) const FRESHNESS_WAIT_MAX: Duration = Duration::from_secs(3);

/// The retry delay in the error of a wait that timed out, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The feed's revision in one history of the store, and the readers that wait for it.
#[derive(Debug)]
pub(crate) struct Freshness {
    /// The revision, as the reflector publishes it.
    published: PublishedNumber,
    /// Notified when a wait begins, in any history.
    wanted: Arc<Notify>,
    /// The source of time.
    clock: Clock,
    /// The number of times that the store has been rolled back.
    epoch: u64,
    /// The highest revision that the store reported in an earlier history; 0 if there was none.
    former: u64,
    /// Set when the store was found to be rolled back. The reflector begins the next history then.
    left_behind: OnceLock<()>,
    /// Set when this history is over because the store was rolled back.
    over: OnceLock<()>,
}

impl Freshness {
    /// Reads what the feed publishes.
    pub(crate) fn new(published: PublishedNumber, clock: Clock) -> Self {
        Self {
            published,
            wanted: Arc::new(Notify::new()),
            clock,
            epoch: 0,
            former: 0,
            left_behind: OnceLock::new(),
            over: OnceLock::new(),
        }
    }

    /// Ends this history and returns the next one, which reads `published`.
    pub(crate) fn successor(&self, published: PublishedNumber) -> Self {
        // Only the first end counts; there is one reflector, so there is no second.
        let _ = self.over.set(());
        Self {
            published,
            wanted: Arc::clone(&self.wanted),
            clock: self.clock.clone(),
            epoch: self.epoch + 1,
            former: self.former.max(self.revision()),
            left_behind: OnceLock::new(),
            over: OnceLock::new(),
        }
    }

    /// Returns the number of this history.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns true if the store has been rolled back since.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// Notes that the store was found to be rolled back, and returns the error for readers of this history.
    pub(crate) fn leave_behind(&self) -> StorageError {
        // Several readers may find it.
        let _ = self.left_behind.set(());
        Self::store_rolled_back()
    }

    /// Checks that the store has not been found to be rolled back. From then on the store itself gives clients
    /// revisions of its new history, and they must not be taken for those of this one.
    ///
    /// # Errors
    /// [`StorageError::NotReady`].
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        match self.left_behind.get() {
            None => Ok(()),
            Some(()) => Err(Self::store_rolled_back()),
        }
    }

    /// Returns true if a revision may be of an earlier history: the store reported it before it was rolled back, and
    /// has not reached it again.
    pub(crate) fn is_former(&self, revision: u64) -> bool {
        revision <= self.former && revision > self.revision()
    }

    /// Returns the error for readers of a history that is over.
    fn store_rolled_back() -> StorageError {
        StorageError::NotReady {
            reason: Some("the store was restored from an older state".to_owned()),
            retry_after_seconds: RETRY_AFTER_SECONDS,
        }
    }

    /// Returns the revision that all listed types have reached.
    pub(crate) fn revision(&self) -> u64 {
        self.published.current()
    }

    /// Returns when a read that begins now times out.
    pub(crate) fn deadline(&self) -> Instant {
        self.clock.now() + FRESHNESS_WAIT_MAX
    }

    /// Waits until the feed has reached `revision`.
    ///
    /// # Errors
    /// [`StorageError::TooLargeResourceVersion`] at the deadline; [`StorageError::NotReady`] when the feed will not
    /// reach the revision: it has ended, or the store was rolled back.
    pub(crate) async fn wait(&self, revision: u64, deadline: Instant) -> Result<(), StorageError> {
        let mut wait = self.published.wait(revision);
        // The first poll registers the wait, so that the notified task finds it.
        let reached = match (&mut wait).now_or_never() {
            Some(reached) => reached,
            None => {
                self.wanted.notify_one();
                tokio::select! {
                    biased;
                    reached = wait => reached,
                    () = self.clock.sleep_until(deadline) => {
                        return Err(StorageError::TooLargeResourceVersion {
                            requested: revision,
                            current: self.revision(),
                            retry_after_seconds: RETRY_AFTER_SECONDS,
                        });
                    }
                }
            }
        };
        match reached {
            Ok(_) => Ok(()),
            Err(_) if self.is_over() => Err(Self::store_rolled_back()),
            Err(_) => Err(StorageError::NotReady {
                reason: Some("the watch cache has stopped".to_owned()),
                retry_after_seconds: RETRY_AFTER_SECONDS,
            }),
        }
    }

    /// Completes when a reader begins to wait.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Returns true if a reader waits.
    pub(crate) fn is_awaited(&self) -> bool {
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
        assert_eq!(fresh.epoch(), 0);
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

    #[tokio::test(start_paused = true)]
    async fn a_feed_that_has_ended_keeps_nobody_waiting() {
        let clock = Clock::real();
        let (publisher, published) = published(9);
        let fresh = Freshness::new(published, clock.clone());
        drop(publisher);
        let begun = clock.now();
        let waited = fresh.wait(10, fresh.deadline()).await;
        let error = waited.expect_err("never reached").to_string();
        assert!(error.ends_with("the watch cache has stopped"), "{error}");
        assert_eq!(clock.now(), begun);
    }

    #[tokio::test(start_paused = true)]
    async fn a_history_that_is_over_keeps_nobody_waiting() {
        let clock = Clock::real();
        let (publisher, first) = published(9);
        let fresh = Freshness::new(first, clock.clone());
        let (_next_publisher, second) = published(0);
        let begun = clock.now();
        let (waited, next) = tokio::join!(fresh.wait(10, fresh.deadline()), async {
            fresh.wanted().await;
            let next = fresh.successor(second);
            drop(publisher);
            next
        });
        let error = waited.expect_err("never reached").to_string();
        assert!(error.ends_with("restored from an older state"), "{error}");
        assert_eq!(clock.now(), begun);
        assert_eq!((next.epoch(), next.revision()), (1, 0));
        assert!(next.is_former(9) && !next.is_former(10) && !next.is_former(0));
        // The one after it has not come so far: the revisions of the first are former ones still.
        let (_publisher, third) = published(0);
        let third = next.successor(third);
        assert_eq!(third.epoch(), 2);
        assert!(third.is_former(9) && !third.is_former(10) && !third.is_former(0));
    }
}
