//! A watch: a position in the published history.
//!
//! No events are queued for a watch, so one that is not polled costs nothing and delays nothing. When it is polled it
//! reads on from its position, a page at a time, and when it has read everything it sleeps until something is
//! published. It ends with an error only when its position has been compacted away.

use futures::{StreamExt, stream};
use tokio::sync::watch;

use super::published::{PublishedState, closed_error};
use crate::storage::backend::{
    BackendError, KeyRange, WatchRequest, WatchResponse, WatchResponses,
};

/// Returns the responses of the watch that a request describes.
pub(super) fn responses(
    request: WatchRequest,
    published: watch::Receiver<PublishedState>,
) -> WatchResponses {
    let position = ReadPosition::new(request, &published.borrow());
    let watch = Watch {
        published,
        position: Some(position),
    };
    stream::unfold(watch, Watch::next).boxed()
}

struct Watch {
    published: watch::Receiver<PublishedState>,
    /// The position; `None` when the watch has ended.
    position: Option<ReadPosition>,
}

impl Watch {
    async fn next(mut self) -> Option<(Result<WatchResponse, BackendError>, Self)> {
        loop {
            let published = self.published.borrow_and_update().clone();
            match self.position.as_mut()?.step(&published) {
                WatchStep::Respond(response) => return Some((Ok(response), self)),
                WatchStep::ReadOn => tokio::task::yield_now().await,
                WatchStep::End(error) => {
                    self.position = None;
                    return Some((Err(error), self));
                }
                WatchStep::Wait => {
                    drop(published);
                    if self.published.changed().await.is_err() {
                        self.position = None;
                        return Some((Err(closed_error()), self));
                    }
                }
            }
        }
    }
}

/// The outcome of a step of a watch.
#[derive(Debug)]
enum WatchStep {
    Respond(WatchResponse),
    /// There may be more events: take another step.
    ReadOn,
    /// Every published event has been sent: wait for the next change.
    Wait,
    End(BackendError),
}

/// The position of a watch.
#[derive(Debug)]
struct ReadPosition {
    range: KeyRange,
    previous: bool,
    /// The first revision whose events have not been sent.
    next: u64,
    progress: ProgressReplies,
}

/// The state of a watch's replies to requests for progress.
#[derive(Debug)]
enum ProgressReplies {
    /// It does not report progress.
    Silent,
    /// It has replied to the requests up to this one.
    Answered(u64),
    /// It noticed this request when the newest revision was `revision`, and replies once it has sent every event up to
    /// there.
    Owed { request: u64, revision: u64 },
}

impl ReadPosition {
    fn new(request: WatchRequest, published: &PublishedState) -> Self {
        Self {
            range: request.range,
            previous: request.previous,
            next: match request.start_revision {
                0 => published.state.revision() + 1,
                start => start,
            },
            progress: match request.progress {
                true => ProgressReplies::Answered(published.progress_requests),
                false => ProgressReplies::Silent,
            },
        }
    }

    fn step(&mut self, published: &PublishedState) -> WatchStep {
        let state = &published.state;
        if self.next < state.compacted() {
            return WatchStep::End(BackendError::Compacted {
                compact_revision: state.compacted(),
            });
        }
        self.notice_progress_request(published);
        let page = state.events(self.next, &self.range, self.previous);
        self.next = page.next;
        if !page.events.is_empty() {
            return WatchStep::Respond(WatchResponse {
                revision: state.revision(),
                events: page.events,
            });
        }
        if let Some(revision) = self.answer_progress_request(state.revision()) {
            return WatchStep::Respond(WatchResponse {
                revision,
                events: Vec::new(),
            });
        }
        if self.next <= state.revision() {
            WatchStep::ReadOn
        } else if published.closed {
            WatchStep::End(closed_error())
        } else {
            WatchStep::Wait
        }
    }

    fn notice_progress_request(&mut self, published: &PublishedState) {
        let request = published.progress_requests;
        if matches!(self.progress, ProgressReplies::Answered(answered) if answered < request) {
            self.progress = ProgressReplies::Owed {
                request,
                revision: published.state.revision(),
            };
        }
    }

    /// Returns the revision of the progress response that is due, if one is.
    fn answer_progress_request(&mut self, newest: u64) -> Option<u64> {
        let ProgressReplies::Owed { request, revision } = self.progress else {
            return None;
        };
        if self.next <= revision {
            return None;
        }
        self.progress = ProgressReplies::Answered(request);
        // A watch that begins at a future revision is ahead of the store.
        Some((self.next - 1).min(newest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread;

    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::embedded::mvcc::{Record, RevisionChange, State};
    use crate::sync::{AtomicBool, AtomicU64, Ordering};

    fn published() -> PublishedState {
        PublishedState {
            leases: imbl::OrdMap::new(),
            state: State::new(),
            size_bytes: Ok(0),
            used_bytes: 0,
            no_space: false,
            refusal: None,
            progress_requests: 0,
            closed: false,
        }
    }

    fn position(start_revision: u64, published: &PublishedState) -> ReadPosition {
        let request = WatchRequest {
            range: KeyRange::prefix("/"),
            start_revision,
            previous: false,
            progress: true,
        };
        ReadPosition::new(request, published)
    }

    /// Returns the revision and the number of events of a response.
    fn batch(step: WatchStep) -> (u64, usize) {
        match step {
            WatchStep::Respond(response) => (response.revision, response.events.len()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn progress_follows_the_events_it_covers_though_writes_go_on() {
        let mut published = published();
        let mut position = position(0, &published);
        published.state.put("/a", Bytes::new(), None);
        published.progress_requests = 2;
        assert_eq!(batch(position.step(&published)), (2, 1));
        published.state.put("/a", Bytes::new(), None);
        assert_eq!(batch(position.step(&published)), (3, 1));
        assert_eq!(batch(position.step(&published)), (3, 0));
        assert!(matches!(position.step(&published), WatchStep::Wait));
    }

    /// A later request may have been made after a write that the answer to the earlier one does not cover.
    #[test]
    fn each_request_for_progress_is_answered_or_a_later_one() {
        let mut published = published();
        let mut position = position(0, &published);
        published.state.put("/a", Bytes::new(), None);
        published.progress_requests = 1;
        assert_eq!(batch(position.step(&published)), (2, 1));
        published.progress_requests = 2;
        assert_eq!(batch(position.step(&published)), (2, 0));
        assert_eq!(batch(position.step(&published)), (2, 0));
        assert!(matches!(position.step(&published), WatchStep::Wait));
    }

    #[test]
    fn progress_is_due_while_what_does_not_concern_the_watch_goes_on() {
        let mut published = published();
        let mut position = position(0, &published);
        published.progress_requests = 1;
        position.notice_progress_request(&published);
        for _ in 0..5_000 {
            published.state.put("other", Bytes::new(), None);
        }
        let (revision, events) = batch(position.step(&published));
        assert_eq!(events, 0);
        assert!(revision < published.state.revision());
    }

    #[test]
    fn a_watch_of_the_future_reports_the_present() {
        let mut published = published();
        let mut position = position(10, &published);
        published.progress_requests = 1;
        assert_eq!(batch(position.step(&published)), (1, 0));
    }

    #[test]
    fn a_watch_ends_when_its_position_is_compacted_away() {
        let mut published = published();
        for _ in 0..4 {
            published.state.put("/a", Bytes::new(), None);
        }
        published.state.compact(3).unwrap();
        let refused = BackendError::Compacted {
            compact_revision: 3,
        };
        match position(2, &published).step(&published) {
            WatchStep::End(error) => assert_eq!(error, refused),
            other => panic!("{other:?}"),
        }
        assert_eq!(batch(position(3, &published).step(&published)), (5, 3));
    }

    #[test]
    fn a_closed_store_ends_a_watch_behind_its_events() {
        let mut published = published();
        let mut position = position(0, &published);
        published.state.put("/a", Bytes::new(), None);
        published.closed = true;
        assert_eq!(batch(position.step(&published)), (2, 1));
        assert!(matches!(position.step(&published), WatchStep::End(_)));
    }

    #[test]
    fn progress_is_up_to_what_has_been_sent() {
        let mut position = ReadPosition {
            range: KeyRange::prefix("/"),
            previous: false,
            next: 5,
            progress: ProgressReplies::Owed {
                request: 1,
                revision: 5,
            },
        };
        assert_eq!(
            position.answer_progress_request(9),
            None,
            "one is left to send"
        );
        position.next = 7;
        assert_eq!(position.answer_progress_request(9), Some(6));
        assert_eq!(position.answer_progress_request(9), None, "it is answered");
    }
    /// A task that knows if it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            // Release: the publication before it.
            self.0.store(true, Ordering::Release);
        }
    }

    /// The number of times that a write comes while the watch looks at what was written before.
    const ROUNDS: u64 = 400;
    /// The number of keys that do not concern the watch and that it looks at each time, which takes it longer than the
    /// other thread needs for its write.
    const OTHER_KEYS: usize = 10_000;

    /// The revisions and the moments that two threads tell each other.
    #[derive(Default)]
    struct Moments {
        /// The newest revision that was published, and the watch woken.
        written: AtomicU64,
        /// The number of times that the watch was polled.
        polls: AtomicU64,
        /// The revision of the last event that was delivered.
        seen: AtomicU64,
        /// The newest revision up to which the watch has looked at all and sleeps.
        asleep_at: AtomicU64,
    }

    /// Polls a watch whenever it is woken, until it has delivered the event of a revision. It is asleep for good if it
    /// has not looked at all that was written before it waits, and is not woken either.
    fn follow(mut watch: WatchResponses, until: u64, moments: &Moments) {
        let task = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut seen = 0;
        while seen < until {
            // Release: pairs with the writer's look, which only times its next write.
            moments.polls.fetch_add(1, Ordering::Release);
            match watch.poll_next_unpin(&mut Context::from_waker(&waker)) {
                Poll::Ready(response) => {
                    let response = response.expect("open").expect("events");
                    seen = response.events.last().expect("an event").kv.mod_revision;
                    // Release: pairs with the writer's look before the next round.
                    moments.seen.store(seen, Ordering::Release);
                }
                Poll::Pending => {
                    // Acquire: pairs with the writer's store, before which it has woken whoever waits.
                    let written = moments.written.load(Ordering::Acquire);
                    let mut is_woken = task.0.swap(false, Ordering::Acquire);
                    // Every other revision concerns it.
                    let concerns = written % 2 == 1;
                    assert!(is_woken || !concerns || seen == written, "asleep at {seen}");
                    while !is_woken {
                        thread::yield_now();
                        // Acquire: as above. Whoever was to be woken for it has been.
                        let written = moments.written.load(Ordering::Acquire);
                        is_woken = task.0.swap(false, Ordering::Acquire);
                        if !is_woken {
                            // Release: pairs with the writer's look.
                            moments.asleep_at.store(written, Ordering::Release);
                        }
                    }
                }
            }
        }
    }

    /// The last write of a round comes while the watch still looks at those before it, on a machine with two cores.
    #[test]
    fn a_watch_never_sleeps_over_the_last_write() {
        let sender = watch::Sender::new(published());
        let request = WatchRequest {
            range: KeyRange::prefix("/"),
            start_revision: 2,
            previous: false,
            progress: false,
        };
        let watch = responses(request, sender.subscribe());
        let moments = Moments::default();
        let until = 1 + 2 * ROUNDS;
        let others: Vec<Arc<str>> = (0..OTHER_KEYS)
            .map(|n| format!("other{n}").into())
            .collect();
        let publish = |state: &State| {
            sender.send_modify(|it| it.state = state.clone());
            moments.written.store(state.revision(), Ordering::Release);
        };
        thread::scope(|scope| {
            let reader = scope.spawn(|| follow(watch, until, &moments));
            let wait = |reached: &dyn Fn() -> bool| {
                while !reached() && !reader.is_finished() {
                    thread::yield_now();
                }
            };
            let mut state = State::new();
            for _ in 0..ROUNDS {
                state.apply(Arc::new(Record {
                    revision: state.revision() + 1,
                    change: RevisionChange::Delete(others.clone()),
                }));
                let polls = moments.polls.load(Ordering::Acquire);
                publish(&state);
                // The poll that is counted already may have seen the write, after which nothing wakes the watch.
                wait(&|| {
                    moments.polls.load(Ordering::Acquire) > polls
                        || moments.asleep_at.load(Ordering::Acquire) == state.revision()
                });
                state.put("/a", Bytes::new(), None);
                publish(&state);
                wait(&|| moments.seen.load(Ordering::Acquire) == state.revision());
            }
        });
    }
}
