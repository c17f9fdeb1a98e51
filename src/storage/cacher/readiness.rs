//! The readiness of a type's cache: a state machine, with one function for its transitions.
//!
//! ```text
//!        Page, Failed             Failed, CaughtUp
//!           +---+                       +---+
//!           |   v                       |   v
//!   ----> Listing -------Listed------> CatchingUp ------Current------> Ready
//!           ^  ^                         ^  |                         |  |
//!           |  +----- Page, HistoryLost -|--+                         |  |
//!           |                            +----- Listed, Suspended -----+  |
//!           +---------------------- HistoryLost -------------------------+
//!
//!   Stop leads from everywhere to Stopped, which nothing leaves.
//! ```
//!
//! The hard part is what must not happen: a type whose history has a gap must not become ready because something else
//! succeeded, and a ready one must not be refused because a refresh failed. So [`Readiness::after`] defines the outcome
//! of every event in every state, and its test goes through all of them.
//!
//! `Ready` alone does not make a watch complete: between the check and the attachment of a watcher the type may be
//! filled again. So a watcher checks again once it is attached: whatever leaves `Ready` changes the state first, and
//! then ends the attached watches.

use std::fmt;
use std::time::Duration;

use crate::clock::Instant;
use crate::storage::StorageError;

/// The bounds of the retry delay of a client, in seconds.
const RETRY_AFTER_SECONDS: (f64, f64) = (1.0, 30.0);

/// The growth of the retry delay for each second that the cache has not been ready.
const RETRY_GROWTH_PER_SECOND: f64 = 0.06;

/// The state of a type's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The type is being filled.
    Pending {
        /// The instant since which it has not been ready.
        since: Instant,
        /// The progress of the filling.
        progress: Progress,
        /// The reason why the last attempt failed, or why it is filled again.
        reason: Option<String>,
    },
    /// The type is served.
    Ready {
        /// The number of times that the cache has become complete, this time included.
        generation: u64,
    },
    /// The feed has ended.
    Stopped,
}

/// The progress of filling a type's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its objects are read from the store.
    Listing {
        /// The number of objects that have been read.
        objects: u64,
    },
    /// The changes since the list are followed.
    CatchingUp {
        /// The revision of the list.
        listed_at: u64,
        /// The revision up to which changes have been applied.
        reached: u64,
        /// The revision at which the type becomes ready.
        newest: u64,
    },
}

/// An event of the state machine.
#[derive(Clone, Debug)]
pub(crate) enum ReadinessEvent {
    /// A page of its list has come.
    Page {
        /// The number of objects that have been read so far.
        objects: u64,
    },
    /// All its pages have been read.
    Listed {
        /// The revision of the list.
        revision: u64,
    },
    /// Changes since the list have come.
    CaughtUp {
        /// The revision up to which changes have been applied.
        reached: u64,
        /// The revision up to which they must be applied.
        newest: u64,
    },
    /// An attempt to list it failed.
    Failed {
        /// The message of the error.
        reason: String,
    },
    /// The cache is as new as the store was when the filling began.
    Current {
        /// The number of that filling.
        generation: u64,
    },
    /// Changes after what the cache holds wait until they can be read.
    Suspended {
        /// The revision up to which changes have been applied.
        revision: u64,
        /// The reason for people.
        reason: String,
    },
    /// The changes after what the cache holds are no longer available.
    HistoryLost {
        /// The message of the error.
        reason: String,
    },
    /// The feed has ended for good.
    Stop,
}

impl Readiness {
    /// Returns the first state of every type.
    pub(super) fn begin(now: Instant) -> Self {
        Self::listing(now, 0, None)
    }

    /// Returns the state after an event.
    #[must_use]
    pub(super) fn after(&self, event: ReadinessEvent, now: Instant) -> Self {
        match (self, event) {
            (Self::Stopped, _) | (_, ReadinessEvent::Stop) => Self::Stopped,

            (Self::Pending { since, reason, .. }, ReadinessEvent::Page { objects }) => {
                Self::listing(*since, objects, reason.clone())
            }
            (Self::Pending { since, reason, .. }, ReadinessEvent::Listed { revision }) => {
                Self::catching_up(*since, revision, reason.clone())
            }
            (
                Self::Pending {
                    since,
                    progress: Progress::CatchingUp { listed_at, .. },
                    reason,
                },
                ReadinessEvent::CaughtUp { reached, newest },
            ) => Self::Pending {
                since: *since,
                progress: Progress::CatchingUp {
                    listed_at: *listed_at,
                    reached,
                    newest,
                },
                reason: reason.clone(),
            },
            (Self::Pending { .. } | Self::Ready { .. }, ReadinessEvent::CaughtUp { .. }) => {
                self.clone()
            }
            (
                Self::Pending {
                    since, progress, ..
                },
                ReadinessEvent::Failed { reason } | ReadinessEvent::Suspended { reason, .. },
            ) => Self::Pending {
                since: *since,
                progress: *progress,
                reason: Some(reason),
            },
            (Self::Pending { since, .. }, ReadinessEvent::HistoryLost { reason }) => {
                Self::listing(*since, 0, Some(reason))
            }
            (Self::Pending { progress, .. }, ReadinessEvent::Current { generation }) => {
                match progress {
                    Progress::CatchingUp { .. } => Self::Ready { generation },
                    // A type that has not been listed is not current, whatever the others are.
                    Progress::Listing { .. } => self.clone(),
                }
            }

            // The type is listed again while it is served; its content stays valid.
            (Self::Ready { .. }, ReadinessEvent::Page { .. } | ReadinessEvent::Failed { .. }) => {
                self.clone()
            }
            (Self::Ready { .. }, ReadinessEvent::Current { generation }) => {
                Self::Ready { generation }
            }
            // The list may be of an earlier revision than what was served.
            (Self::Ready { .. }, ReadinessEvent::Listed { revision }) => {
                Self::catching_up(now, revision, None)
            }
            // Nobody is served a state without them.
            (Self::Ready { .. }, ReadinessEvent::Suspended { revision, reason }) => {
                Self::catching_up(now, revision, Some(reason))
            }
            (Self::Ready { .. }, ReadinessEvent::HistoryLost { reason }) => {
                Self::listing(now, 0, Some(reason))
            }
        }
    }

    fn listing(since: Instant, objects: u64, reason: Option<String>) -> Self {
        Self::Pending {
            since,
            progress: Progress::Listing { objects },
            reason,
        }
    }

    fn catching_up(since: Instant, listed_at: u64, reason: Option<String>) -> Self {
        Self::Pending {
            since,
            progress: Progress::CatchingUp {
                listed_at,
                reached: listed_at,
                newest: listed_at,
            },
            reason,
        }
    }

    /// Returns true if the type is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    /// Checks that the type is ready at `now`.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] unless ready, with a retry delay that grows with the time that it has not been.
    pub fn check(&self, now: Instant) -> Result<(), StorageError> {
        match self {
            Self::Ready { .. } => Ok(()),
            Self::Pending { since, reason, .. } => Err(StorageError::NotReady {
                reason: reason.clone(),
                retry_after_seconds: retry_after(now.saturating_duration_since(*since)),
            }),
            Self::Stopped => Err(StorageError::NotReady {
                reason: Some("the watch cache has stopped".to_owned()),
                retry_after_seconds: 1,
            }),
        }
    }

    /// Returns a message for operators at `now`; `None` if the type is ready.
    #[must_use]
    pub fn complaint(&self, now: Instant) -> Option<String> {
        match self {
            Self::Ready { .. } => None,
            Self::Stopped => Some("stopped".to_owned()),
            Self::Pending {
                since,
                progress,
                reason,
            } => {
                let seconds = now.saturating_duration_since(*since).as_secs();
                let mut text = format!("{progress}, not ready for {seconds} s");
                if let Some(reason) = reason {
                    text.push_str(": ");
                    text.push_str(reason);
                }
                Some(text)
            }
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listing { objects } => write!(formatter, "listing, {objects} objects so far"),
            Self::CatchingUp {
                listed_at,
                reached,
                newest,
            } => write!(
                formatter,
                "catching up since revision {listed_at}, at {reached} of {newest}"
            ),
        }
    }
}

/// Returns the retry delay in seconds, by kube-apiserver's formula.
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
    use crate::clock::Clock;

    #[test]
    fn the_retry_time_grows_with_the_down_time() {
        let after = |seconds| retry_after(Duration::from_secs(seconds));
        assert_eq!([0, 11, 12, 30, 60, 3600].map(after), [1, 1, 2, 6, 30, 30]);
    }

    #[test]
    fn every_event_has_its_outcome_in_every_state() {
        let start = Clock::real().now();
        let now = start + Duration::from_secs(100);
        let old = || Some("old".to_owned());
        let new = || Some("new".to_owned());
        let listing = Readiness::listing;
        let catching_up = Readiness::catching_up;
        let ready = |generation| Readiness::Ready { generation };
        let stopped = || Readiness::Stopped;
        let states = [
            listing(start, 10, old()),
            catching_up(start, 50, old()),
            ready(1),
            stopped(),
        ];
        let (reached, newest) = (50, 50);
        // A row for each event, a column for each of the states above.
        let table: [(ReadinessEvent, [Readiness; 4]); 7] = [
            (
                ReadinessEvent::Page { objects: 20 },
                [
                    listing(start, 20, old()),
                    listing(start, 20, old()),
                    ready(1),
                    stopped(),
                ],
            ),
            (
                ReadinessEvent::Listed { revision: 60 },
                [
                    catching_up(start, 60, old()),
                    catching_up(start, 60, old()),
                    catching_up(now, 60, None),
                    stopped(),
                ],
            ),
            (ReadinessEvent::CaughtUp { reached, newest }, states.clone()),
            (
                ReadinessEvent::Failed {
                    reason: "new".to_owned(),
                },
                [
                    listing(start, 10, new()),
                    catching_up(start, 50, new()),
                    ready(1),
                    stopped(),
                ],
            ),
            (
                ReadinessEvent::Current { generation: 2 },
                [listing(start, 10, old()), ready(2), ready(2), stopped()],
            ),
            (
                ReadinessEvent::HistoryLost {
                    reason: "new".to_owned(),
                },
                [
                    listing(start, 0, new()),
                    listing(start, 0, new()),
                    listing(now, 0, new()),
                    stopped(),
                ],
            ),
            (ReadinessEvent::Stop, std::array::from_fn(|_| stopped())),
        ];
        for (event, outcomes) in table {
            for (state, outcome) in states.iter().zip(outcomes) {
                let after = state.after(event.clone(), now);
                assert_eq!(after, outcome, "{state:?} after {event:?}");
            }
        }
    }

    #[test]
    fn changes_that_wait_suspend_a_type() {
        let start = Clock::real().now();
        let now = start + Duration::from_secs(100);
        let waiting = || Some("waiting".to_owned());
        for (state, outcome) in [
            (
                Readiness::listing(start, 10, None),
                Readiness::listing(start, 10, waiting()),
            ),
            (
                Readiness::catching_up(start, 50, None),
                Readiness::catching_up(start, 50, waiting()),
            ),
            (
                Readiness::Ready { generation: 1 },
                Readiness::catching_up(now, 60, waiting()),
            ),
            (Readiness::Stopped, Readiness::Stopped),
        ] {
            let reason = "waiting".to_owned();
            let after = state.after(
                ReadinessEvent::Suspended {
                    revision: 60,
                    reason,
                },
                now,
            );
            assert_eq!(after, outcome, "{state:?}");
        }
    }

    #[test]
    fn an_operator_is_told_what_is_going_on() {
        let start = Clock::real().now();
        let now = start + Duration::from_secs(12);
        let mut state = Readiness::begin(start);
        let complaint = |state: &Readiness| state.complaint(now).unwrap_or_default();
        assert_eq!(
            complaint(&state),
            "listing, 0 objects so far, not ready for 12 s"
        );
        for event in [
            ReadinessEvent::Failed {
                reason: "no leader".to_owned(),
            },
            ReadinessEvent::Page { objects: 10_000 },
        ] {
            state = state.after(event, now);
        }
        assert_eq!(
            complaint(&state),
            "listing, 10000 objects so far, not ready for 12 s: no leader"
        );
        state = state.after(ReadinessEvent::Listed { revision: 7 }, now);
        assert_eq!(
            complaint(&state),
            "catching up since revision 7, at 7 of 7, not ready for 12 s: no leader"
        );
        let (reached, newest) = (8, 100);
        state = state.after(ReadinessEvent::CaughtUp { reached, newest }, now);
        assert_eq!(
            complaint(&state),
            "catching up since revision 7, at 8 of 100, not ready for 12 s: no leader"
        );
        state = state.after(ReadinessEvent::Current { generation: 1 }, now);
        assert_eq!(complaint(&state), "");
    }
}
