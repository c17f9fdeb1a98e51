//! One watch: a cursor, a filter, and a channel.
//!
//! ```text
//!   State ----> CatchUp ----> Live ----> Ended
//!                  ^            |
//!                  +--- full ---+
//! ```
//!
//! - *State*: the objects as of the moment the watch began, from a snapshot that was taken in
//!   constant time, then the bookmark that marks their end.
//! - *CatchUp*: the events of the window from the cursor on.
//! - *Live*: what the channel tells. When it was full, back to *CatchUp*; only a watch that the
//!   window has passed ends with an error.
//!
//! Nobody pushes events at a client: the connection's own task asks for the next one when it can
//! send it. Dropping the watch is its end.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::attachment::Attachment;
use super::engine_metrics::Parked;
use super::event::CacheEvent;
use super::filter::Filter;
use super::snapshot::{Entry, SnapshotMap};
use super::view::CacheView;
use crate::meta::{Object, WatchEvent};
use crate::ring::channel::Signal;
use crate::ring::log::Slot;
use crate::storage::StorageError;

/// How many objects or events are looked at before other tasks get their turn.
const LOOKED_AT_MAX: usize = 100;

/// A watch of a type.
#[derive(Debug)]
pub(super) struct CacheWatcher {
    /// The registration with the dispatcher; ends on drop.
    attachment: Attachment,
    phase: Phase,
    /// The next event's number.
    cursor: u64,
    /// Events at or below this revision are not shown: the client has them, or does not want them.
    floor: u64,
    /// The revision of what was delivered last.
    reached: u64,
    /// Counts the watch as parked, from the overflow of its channel until it listens again.
    parked: Option<Parked>,
    /// Everything up to this revision has been delivered. What shares a revision is delivered one
    /// by one, so an event says this of the revision before its own.
    complete: u64,
}

#[derive(Debug)]
enum Phase {
    State(StateInterval),
    CatchUp {
        /// True once the channel takes events again.
        resumed: bool,
    },
    Live,
    Ended,
}

/// The initial state, on its way.
#[derive(Debug)]
pub(super) struct StateInterval {
    /// The objects; shared with the cache.
    pub(super) state: SnapshotMap,
    /// True if a bookmark marks the end.
    pub(super) end_bookmark: bool,
    /// The last key that was looked at.
    after: Option<Arc<str>>,
    /// Selected objects that are to be delivered.
    ready: VecDeque<Arc<Object>>,
    /// True once all keys have been looked at.
    done: bool,
}

/// Where a watch begins.
#[derive(Debug)]
pub(super) struct WatchStart {
    /// The number of the first event.
    pub(super) cursor: u64,
    /// The revision that the client has, or gets with the state.
    pub(super) floor: u64,
    /// The state to begin with.
    pub(super) state: Option<StateInterval>,
}

impl CacheWatcher {
    /// A watch that has been attached and begins where the window was found after that.
    pub(super) fn new(attachment: Attachment, start: WatchStart) -> Self {
        let catch_up = Phase::CatchUp { resumed: false };
        Self {
            attachment,
            phase: start.state.map_or(catch_up, Phase::State),
            cursor: start.cursor,
            floor: start.floor,
            reached: start.floor,
            parked: None,
            complete: start.floor,
        }
    }

    /// Delivers the initial state.
    fn state(&mut self) -> Step {
        let Phase::State(interval) = &mut self.phase else {
            return ControlFlow::Continue(());
        };
        if let Some(object) = interval.ready.pop_front() {
            self.attachment.cache.metrics.init_events.inc();
            return ControlFlow::Break(Ok(WatchEvent::Added(object)));
        }
        if !interval.done {
            interval.advance(&self.attachment.filter);
            return ControlFlow::Continue(());
        }
        let end_bookmark = interval.end_bookmark;
        self.phase = Phase::CatchUp { resumed: false };
        if end_bookmark {
            return ControlFlow::Break(Ok(WatchEvent::Bookmark {
                revision: self.reached,
                initial_events_end: true,
            }));
        }
        ControlFlow::Continue(())
    }

    /// Reads the window from the cursor on.
    fn catch_up(&mut self) -> Step {
        let view = self.attachment.cache.view();
        if self.cursor < view.first() {
            return self.skip_or_expire(&view);
        }
        for event in view.events(self.cursor).take(LOOKED_AT_MAX) {
            self.cursor += 1;
            let seen = self.attachment.filter.convert(event);
            if let Some(item) = self.advance(event, seen) {
                return ControlFlow::Break(Ok(item));
            }
        }
        if self.cursor >= view.end() {
            // What comes from now on is told; what came meanwhile is read once more.
            let resumed = matches!(self.phase, Phase::CatchUp { resumed: true });
            self.phase = if resumed {
                self.parked = None;
                Phase::Live
            } else {
                self.attachment.receiver.resume();
                Phase::CatchUp { resumed: true }
            };
        }
        ControlFlow::Continue(())
    }

    /// Does what the channel says.
    fn follow(&mut self, signal: Signal) -> Step {
        match signal {
            Signal::Event(sequence) => self.deliver(sequence),
            Signal::Lagged(sequence) => {
                self.cursor = self.cursor.max(sequence);
                self.phase = Phase::CatchUp { resumed: false };
                self.parked = Some(Parked::count(&self.attachment.cache.metrics.engine));
                ControlFlow::Continue(())
            }
            Signal::Bookmark(revision) => self.bookmark(revision),
            Signal::End(last) => {
                self.phase = Phase::Ended;
                if self.attachment.cache.fresh.is_over() {
                    // The client's version means something else now: it must not come back with it.
                    return ControlFlow::Break(Err(StorageError::WatchExpired));
                }
                last.map_or(ControlFlow::Continue(()), |last| self.bookmark(last))
            }
        }
    }

    /// Delivers a bookmark, unless the watch is further along, or does not begin before a later
    /// revision.
    fn bookmark(&mut self, revision: u64) -> Step {
        if revision < self.reached {
            return ControlFlow::Continue(());
        }
        self.reached = revision;
        self.complete = revision;
        ControlFlow::Break(Ok(WatchEvent::Bookmark {
            revision,
            initial_events_end: false,
        }))
    }

    /// Delivers an event that the channel told of, unless it was found in the window before.
    fn deliver(&mut self, sequence: u64) -> Step {
        if sequence < self.cursor {
            return ControlFlow::Continue(());
        }
        let view = self.attachment.cache.view();
        // It was published before it was told, so it is there or it is gone.
        let Slot::Value(event) = view.slot(sequence) else {
            return self.skip_or_expire(&view);
        };
        self.cursor = sequence + 1;
        // A watcher is told of events in its scope alone. One that selects all of that does without
        // its filter, which lies in memory that nobody else has looked at.
        let seen = if self.attachment.whole_scope {
            event.seen_by_all()
        } else {
            self.attachment.filter.convert(event)
        };
        match self.advance(event, seen) {
            Some(item) => ControlFlow::Break(Ok(item)),
            None => ControlFlow::Continue(()),
        }
    }

    /// Moves on to an event, if the watch sees anything of it.
    fn advance(&mut self, event: &CacheEvent, seen: Option<WatchEvent>) -> Option<WatchEvent> {
        let seen = seen.filter(|_| event.revision > self.floor)?;
        self.reached = event.revision;
        self.complete = event.revision - 1;
        Some(seen)
    }

    /// The event at the cursor is gone. Goes on behind it if all that is gone is what the client has
    /// or does not want: a watch of a later version than the cache had reached. Otherwise ends.
    fn skip_or_expire(&mut self, view: &CacheView) -> Step {
        if let Some(next) = view.after(self.complete) {
            self.cursor = next;
            return ControlFlow::Continue(());
        }
        self.phase = Phase::Ended;
        self.attachment.cache.metrics.terminated_watchers.inc();
        ControlFlow::Break(Err(StorageError::TooOld {
            requested: self.reached,
            oldest: view.base_revision(),
        }))
    }
}

impl Stream for CacheWatcher {
    type Item = Result<WatchEvent, StorageError>;

    /// The events, in order; `None` at the end, from then on.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let step = match &self.phase {
                Phase::State(_) => self.state(),
                Phase::CatchUp { .. } => self.catch_up(),
                Phase::Live => {
                    let signal = ready!(self.attachment.receiver.poll(context));
                    self.follow(signal)
                }
                Phase::Ended => return Poll::Ready(None),
            };
            match step {
                ControlFlow::Break(item) => return Poll::Ready(Some(item)),
                ControlFlow::Continue(()) => {
                    ready!(pin!(tokio::task::consume_budget()).poll(context));
                }
            }
        }
    }
}

/// An item for the client, or another round.
type Step = ControlFlow<Result<WatchEvent, StorageError>>;

impl StateInterval {
    /// All selected objects of a state.
    pub(super) fn new(state: SnapshotMap, end_bookmark: bool) -> Self {
        Self {
            state,
            end_bookmark,
            after: None,
            ready: VecDeque::new(),
            done: false,
        }
    }

    /// Looks at some more keys.
    fn advance(&mut self, filter: &Filter) {
        let scope = filter.scope();
        if !scope.ends_with('/') {
            let object = self.state.get(scope).and_then(Entry::object);
            self.ready
                .extend(object.filter(|it| filter.selects(it)).cloned());
            self.done = true;
            return;
        }
        let after = self.after.take();
        // The scope itself is a folder, so no object has it as its key.
        let entries = self.state.after(scope, after.as_deref().unwrap_or(scope));
        let mut looked_at = 0;
        for (key, entry) in entries.take(LOOKED_AT_MAX) {
            looked_at += 1;
            self.after = Some(Arc::clone(key));
            let object = entry.object().filter(|it| filter.selects(it));
            self.ready.extend(object.cloned());
        }
        self.done = looked_at < LOOKED_AT_MAX;
    }
}
