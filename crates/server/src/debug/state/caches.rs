//! The caches of a server or relay, and how far they have come.

use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::cacher::{Feed, TypeFigures};
use ringwatch_observe::status::FeedState;
use ringwatch_relay::Caches;

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
        /// The store's past answers to questions for its newest revision.
        answers: Answers,
    },
    /// The feeds of a relay, one for each type.
    Relay(Arc<Caches>),
}

/// The end of a question for the store's newest revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Failed,
    /// It did not answer in time.
    TooLate,
}

/// The past answers of a store to the questions for its newest revision, of which each document asks one.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The time since which there has been no sign of the store; `None` if there was one after the last question.
    silent_since: Option<Instant>,
    /// The time of the last question, and the revision that the caches had come to then.
    last: Option<(Instant, u64)>,
}

impl Answers {
    /// Notes how a question ended. Returns the time that the answer took, or has taken so far if changes show that the
    /// store works, and the time for which there has been no sign of it.
    fn note(
        &mut self,
        asked: Instant,
        now: Instant,
        end: End,
        revision: u64,
    ) -> (Option<Duration>, Duration) {
        let passed = |since| now.saturating_duration_since(since);
        // Nothing is known of a time in which nobody asked.
        let last = self.last.replace((asked, revision));
        let last = last.filter(|(it, _)| asked.saturating_duration_since(*it) < FOLLOWED_MAX);
        let works = match end {
            End::Answered => true,
            End::Failed => false,
            End::TooLate => last.is_some_and(|(_, seen)| seen < revision),
        };
        let since = self.silent_since.filter(|_| last.is_some());
        self.silent_since = (!works).then(|| since.unwrap_or(asked));
        (
            works.then(|| passed(asked)),
            self.silent_since.map_or(Duration::ZERO, passed),
        )
    }
}

impl CachesSource {
    /// Returns the caches of a server.
    pub(crate) fn feed(feed: &Feed) -> Self {
        Self::Feed {
            feed: feed.clone(),
            behind: None,
            answers: Answers::default(),
        }
    }

    /// Returns how far the caches have come. The store is asked for its newest revision.
    pub(super) async fn progress(&mut self, clock: &Clock) -> FeedState {
        let (feed, behind, answers) = match self {
            Self::Feed {
                feed,
                behind,
                answers,
            } => (feed, behind, answers),
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
        let answer = clock.timeout(STORE_TIMEOUT, feed.store_revision()).await;
        let (end, store_revision) = match answer {
            Ok(Ok(revision)) => (End::Answered, Some(revision)),
            Ok(Err(_)) => (End::Failed, None),
            Err(_) => (End::TooLate, None),
        };
        let (revision, now) = (feed.revision(), clock.now());
        let passed = |since: Instant| now.saturating_duration_since(since).as_secs_f64();
        let (took, silent) = answers.note(asked, now, end, revision);
        *behind = behind
            .filter(|(wanted, _)| *wanted > revision)
            .or_else(|| Some((store_revision.filter(|it| *it > revision)?, now)));
        let lag = behind.map(|(_, since)| passed(since));
        FeedState {
            revision: Some(revision),
            store_revision,
            // A store that does not answer may be ahead.
            lag_seconds: lag.or_else(|| store_revision.map(|_| 0.0)),
            store_seconds: took.map(|it| it.as_secs_f64()),
            silent_seconds: Some(silent.as_secs_f64()),
        }
    }

    pub(super) fn figures(&self) -> Vec<TypeFigures> {
        match self {
            Self::Feed { feed, .. } => feed.figures(),
            Self::Relay(caches) => caches.figures(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_slow_is_not_silent_while_changes_come() {
        let mut answers = Answers::default();
        let began = Clock::real().now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let (second, zero) = (Duration::from_secs(1), Duration::ZERO);
        let mut note = |asked, end, revision| answers.note(at(asked), at(asked + 1), end, revision);
        assert_eq!(note(0, End::Answered, 5), (Some(second), zero));
        assert_eq!(note(1, End::TooLate, 6), (Some(second), zero));
        assert_eq!(note(2, End::TooLate, 6), (None, second));
        let since_the_first = (None, 3 * second);
        assert_eq!(note(4, End::TooLate, 6), since_the_first);
        assert_eq!(note(5, End::TooLate, 7), (Some(second), zero));
        assert_eq!(note(6, End::Failed, 8), (None, second), "it is no answer");
        // Nobody asked meanwhile, so it may have worked.
        assert_eq!(note(60, End::TooLate, 9), (None, second));
    }
}
