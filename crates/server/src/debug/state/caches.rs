//! The caches of a server or relay, and how far they have come.

use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::cacher::{Feed, TypeFigures};
use ringwatch_relay::Caches;
use ringwatch_state::FeedState;

/// Maximum time that a document waits for the newest revision of the store.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time between two documents of which the second goes on from what the first saw of the store.
const FOLLOWED_MAX: Duration = Duration::from_secs(10);

/// The caches whose figures are shown.
#[derive(Debug)]
pub(crate) enum CachesSource {
    /// The one feed of a server.
    Feed {
        /// The feed.
        feed: Feed,
        /// A revision of the store that the caches had not reached when they were last looked at, and the time of that.
        behind: Option<(u64, Instant)>,
        /// The time since which the store has not answered; `None` if it answered when it was last asked.
        silent_since: Option<Instant>,
        /// The time at which it was last asked; `None` before that.
        asked: Option<Instant>,
    },
    /// The feeds of a relay, one for each type.
    Relay(Arc<Caches>),
}

impl CachesSource {
    /// Returns the caches of a server.
    pub(crate) fn feed(feed: &Feed) -> Self {
        Self::Feed {
            feed: feed.clone(),
            behind: None,
            silent_since: None,
            asked: None,
        }
    }

    /// Returns how far the caches have come. The store is asked for its newest revision.
    pub(super) async fn progress(&mut self, clock: &Clock) -> FeedState {
        let (feed, behind, (silent_since, last)) = match self {
            Self::Feed {
                feed,
                behind,
                silent_since,
                asked,
            } => (feed, behind, (silent_since, asked)),
            Self::Relay(caches) => {
                return FeedState {
                    revision: None,
                    store_revision: None,
                    lag_seconds: Some(caches.longest_away().as_secs_f64()),
                    store_seconds: None,
                    silent_seconds: None,
                };
            }
        };
        let asked = clock.now();
        // Nothing is known of a time in which nobody asked.
        let was_followed =
            last.is_some_and(|it| asked.saturating_duration_since(it) < FOLLOWED_MAX);
        *silent_since = silent_since.filter(|_| was_followed);
        *last = Some(asked);
        let answer = clock.timeout(STORE_TIMEOUT, feed.store_revision()).await;
        let store_revision = answer.ok().and_then(Result::ok);
        let (revision, now) = (feed.revision(), clock.now());
        let passed = |since: Instant| now.saturating_duration_since(since).as_secs_f64();
        *silent_since = match store_revision {
            Some(_) => None,
            None => Some(silent_since.unwrap_or(asked)),
        };
        *behind = behind
            .filter(|(wanted, _)| *wanted > revision)
            .or_else(|| Some((store_revision.filter(|it| *it > revision)?, now)));
        let lag = behind.map(|(_, since)| passed(since));
        FeedState {
            revision: Some(revision),
            store_revision,
            // A store that does not answer may be ahead.
            lag_seconds: lag.or_else(|| store_revision.map(|_| 0.0)),
            store_seconds: store_revision.map(|_| passed(asked)),
            silent_seconds: Some(silent_since.map_or(0.0, passed)),
        }
    }

    pub(super) fn figures(&self) -> Vec<TypeFigures> {
        match self {
            Self::Feed { feed, .. } => feed.figures(),
            Self::Relay(caches) => caches.figures(),
        }
    }
}
