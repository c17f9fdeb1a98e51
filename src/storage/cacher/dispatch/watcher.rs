//! One watch: a cursor, a filter, and a channel.
//!
//! ```text
//!   State ----> CatchUp ----> Live ----> Ended
//!                 ^  ^          | |
//!                 |  +-- full --+ |
//!                 +-- Following <-+
//! ```
//!
//! - *State*: the objects as of the moment the watch began, from a snapshot that was taken in
//!   constant time, then the bookmark that marks their end.
//! - *CatchUp*: the events of the window from the cursor on.
//! - *Live*: the signals of the channel. When it was full, back to *CatchUp*; only a watch that the window has passed
//!   ends with an error.
//! - *Following*: nothing, since another watch delivers its events ([`super::following`]).
//!
//! Nothing is pushed to a client: the connection's own task polls for the next event when it can write it. Dropping the
//! watch ends it.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::attachment::Attachment;
use super::filter::Filter;
use super::signal_channel::Receiver;
use super::watch_position::WatchPosition;
use crate::meta::{Object, WatchEvent};
use crate::ring::channel::Signal;
use crate::ring::log::Slot;
use crate::storage::cacher::metrics::engine_metrics::OverflowedWatcher;
use crate::storage::cacher::window::event::CacheEvent;
use crate::storage::cacher::window::snapshot::{Entry, SnapshotMap};
use crate::storage::cacher::window::view::CacheView;
use crate::storage::{StorageError, WatchObserver};

/// Maximum number of objects or events that are looked at before the task yields.
pub(super) const LOOKED_AT_MAX: usize = 100;

/// A watch of a type.
#[derive(Debug)]
pub(crate) struct CacheWatcher {
    /// The registration with the dispatcher; ends on drop.
    pub(super) attachment: Attachment,
    pub(super) phase: WatcherPhase,
    /// The number of the next event.
    pub(super) cursor: u64,
    /// Events at or below this revision are not delivered: the client has them, or did not request them.
    pub(super) start_revision: u64,
    /// True if changed objects are delivered with what they were before.
    pub(super) with_previous: bool,
    /// The revision of the last delivered item.
    pub(super) reached: u64,
    /// Counts the watch in the metrics from the overflow of its channel until the channel is resumed.
    pub(super) overflowed: Option<OverflowedWatcher>,
    /// The place of the watch for those who look at it; `None` if nobody does.
    pub(super) place: Option<Arc<WatchPosition>>,
    /// The revision up to which everything has been delivered. Events that share a revision are delivered one by one,
    /// so an event completes only the revision before its own.
    pub(super) complete: u64,
}

#[derive(Debug)]
pub(super) enum WatcherPhase {
    State(Box<StateInterval>),
    CatchUp {
        /// True once the channel has been resumed.
        resumed: bool,
    },
    Live,
    Following,
    /// Ends, because the watch that it followed has been ended.
    CutOff,
    Ended,
    /// Has ended, because the window has passed it.
    Expired,
}

/// The initial state, while it is being delivered.
#[derive(Debug)]
pub(crate) struct StateInterval {
    /// The objects; shared with the cache.
    pub(crate) state: SnapshotMap,
    /// True if a bookmark follows the last object.
    pub(crate) end_bookmark: bool,
    /// The last key that was looked at.
    after: Option<Arc<str>>,
    /// Selected objects that are to be delivered next.
    ready: VecDeque<Arc<Object>>,
    /// True once all keys have been looked at.
    done: bool,
}

/// The cursor, and the state if any, with which a watch begins.
#[derive(Debug)]
pub(crate) struct WatchStart {
    /// The number of the first event.
    pub(crate) cursor: u64,
    /// The revision that the client has, or receives with the state.
    pub(crate) start_revision: u64,
    /// The initial state, if the watch begins with one.
    pub(crate) state: Option<StateInterval>,
}

impl CacheWatcher {
    /// Creates a watch that has been attached and begins where the window was found after that.
    pub(crate) fn new(attachment: Attachment, start: WatchStart) -> Self {
        let catch_up = WatcherPhase::CatchUp { resumed: false };
        Self {
            attachment,
            phase: start
                .state
                .map_or(catch_up, |state| WatcherPhase::State(Box::new(state))),
            cursor: start.cursor,
            start_revision: start.start_revision,
            with_previous: false,
            reached: start.start_revision,
            overflowed: None,
            place: None,
            complete: start.start_revision,
        }
    }

    /// Returns this watch, which delivers changed objects with what they were before if `with_previous`.
    pub(crate) fn with_previous(self, with_previous: bool) -> Self {
        Self {
            with_previous,
            ..self
        }
    }

    /// Returns this watch, whose place the observer is shown.
    pub(crate) fn observed_by(self, observer: Option<Arc<dyn WatchObserver>>) -> Self {
        let Some(observer) = observer else {
            return self;
        };
        let cache = Arc::clone(&self.attachment.cache);
        let Some(channel) = self.attachment.receiver().map(Receiver::observer) else {
            return self;
        };
        let place = Arc::new(WatchPosition::new(cache, channel, self.cursor));
        observer.begins(Arc::clone(&place) as _);
        Self {
            place: Some(place),
            ..self
        }
    }

    /// Delivers the initial state.
    fn state(&mut self) -> Step {
        let WatcherPhase::State(interval) = &mut self.phase else {
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
        self.phase = WatcherPhase::CatchUp { resumed: false };
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
                self.show_cursor();
                return ControlFlow::Break(Ok(item));
            }
        }
        self.show_cursor();
        if self.cursor >= view.end() {
            self.end_of_window();
        }
        ControlFlow::Continue(())
    }

    /// Goes on from the end of the window. Later events are sent through the channel; those that came before it was
    /// resumed are read from the window once more.
    pub(super) fn end_of_window(&mut self) {
        debug_assert!(matches!(self.phase, WatcherPhase::CatchUp { .. }));
        if matches!(self.phase, WatcherPhase::CatchUp { resumed: true }) {
            self.overflowed = None;
            if let Some(place) = &self.place {
                place.is_live();
            }
            self.phase = WatcherPhase::Live;
        } else {
            if let Some(receiver) = self.attachment.receiver_mut() {
                receiver.resume();
            }
            self.phase = WatcherPhase::CatchUp { resumed: true };
        }
    }

    /// Shows those who look at the watch how far it has read the window.
    fn show_cursor(&self) {
        if let Some(place) = &self.place {
            place.reads(self.cursor, self.overflowed.is_some());
        }
    }

    /// Handles a signal of the channel.
    fn handle(&mut self, signal: Signal) -> Step {
        match signal {
            Signal::Event(sequence) => self.deliver(sequence),
            Signal::Lagged(sequence) => {
                self.cursor = self.cursor.max(sequence);
                self.phase = WatcherPhase::CatchUp { resumed: false };
                let metrics = &self.attachment.cache.metrics.engine;
                self.overflowed = Some(OverflowedWatcher::count(metrics));
                self.show_cursor();
                ControlFlow::Continue(())
            }
            Signal::Bookmark(revision) => self.bookmark(revision),
            Signal::End(last) => self.end(last),
        }
    }

    /// Ends the watch, after a bookmark of a revision if there is one.
    fn end(&mut self, last: Option<u64>) -> Step {
        self.phase = WatcherPhase::Ended;
        if self.attachment.cache.fresh.is_over() {
            // The client's version means something else now: it must not resume from it.
            return ControlFlow::Break(Err(StorageError::WatchExpired));
        }
        last.map_or(ControlFlow::Continue(()), |last| self.bookmark(last))
    }

    /// Ends a watch that could not be attached again, since all watches are being ended for good, once it has read the
    /// window to its end.
    fn end_at_window(&mut self) -> Step {
        let (view, revision) = self.attachment.cache.current();
        if self.cursor < view.end() {
            self.phase = WatcherPhase::CatchUp { resumed: false };
            return ControlFlow::Continue(());
        }
        self.end(self.attachment.bookmarks.map(|_| revision))
    }

    /// Delivers a bookmark, unless something later has been delivered or the watch begins at a later revision.
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

    /// Delivers an event that the channel signalled, unless it was read from the window before.
    fn deliver(&mut self, sequence: u64) -> Step {
        if sequence < self.cursor {
            return ControlFlow::Continue(());
        }
        let view = self.attachment.cache.view();
        // It was published before it was signalled, so it is in the window or has been evicted.
        let Slot::Value(event) = view.slot(sequence) else {
            return self.skip_or_expire(&view);
        };
        self.cursor = sequence + 1;
        // A watcher is sent events in its scope alone. One that selects all of that needs no filter, which would be
        // memory that nobody else has just touched.
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

    /// Moves the cursor past an event, and returns what the watch sees of it.
    fn advance(&mut self, event: &CacheEvent, seen: Option<WatchEvent>) -> Option<WatchEvent> {
        let seen = seen.filter(|_| event.revision > self.start_revision)?;
        self.reached = event.revision;
        self.complete = event.revision - 1;
        Some(match (seen, &event.previous) {
            (WatchEvent::Modified(object), Some(previous)) if self.with_previous => {
                WatchEvent::Replaced {
                    object,
                    previous: Arc::clone(previous),
                }
            }
            (seen, _) => seen,
        })
    }

    /// Handles an event at the cursor that has been evicted. Continues after it if everything evicted is at or below
    /// the start revision, as for a watch of a later version than the cache had reached. Otherwise ends the watch.
    fn skip_or_expire(&mut self, view: &CacheView) -> Step {
        if let Some(next) = view.after(self.complete) {
            self.cursor = next;
            return ControlFlow::Continue(());
        }
        self.phase = WatcherPhase::Expired;
        if self.attachment.counts() {
            self.attachment.cache.metrics.terminated_watchers.inc();
        }
        ControlFlow::Break(Err(StorageError::TooOld {
            requested: self.reached,
            oldest: view.base_revision(),
        }))
    }
}

impl Stream for CacheWatcher {
    type Item = Result<WatchEvent, StorageError>;

    /// Returns the events in order; `None` once the watch has ended.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let step = match &self.phase {
                WatcherPhase::State(_) => self.state(),
                WatcherPhase::CatchUp { .. } => self.catch_up(),
                WatcherPhase::Live => match self.attachment.receiver_mut() {
                    Some(receiver) => {
                        let signal = ready!(receiver.poll(context));
                        self.handle(signal)
                    }
                    None => self.end_at_window(),
                },
                WatcherPhase::Following => return Poll::Pending,
                WatcherPhase::CutOff => self.end(None),
                WatcherPhase::Ended | WatcherPhase::Expired => return Poll::Ready(None),
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

/// The outcome of a step: an item for the client, or another step.
type Step = ControlFlow<Result<WatchEvent, StorageError>>;

impl StateInterval {
    /// Creates the interval of all objects of a state.
    pub(crate) fn new(state: SnapshotMap, end_bookmark: bool) -> Self {
        Self {
            state,
            end_bookmark,
            after: None,
            ready: VecDeque::new(),
            done: false,
        }
    }

    /// Looks at some more keys, and returns how many.
    fn advance(&mut self, filter: &Filter) -> usize {
        let scope = filter.scope();
        if !scope.ends_with('/') {
            let object = self.state.get(scope).and_then(Entry::object);
            self.ready
                .extend(object.filter(|it| filter.selects(it)).cloned());
            self.done = true;
            return 1;
        }
        let after = self.after.take();
        // The scope itself is a folder, so no object has it as its key.
        let after = after.as_deref().unwrap_or(scope);
        let predicate = filter.predicate();
        let indexed = predicate.and_then(|it| self.state.indexed(it, scope, after));
        let (ready, last) = (&mut self.ready, &mut self.after);
        let mut looked_at = 0;
        let look_at = |(key, entry): (&Arc<str>, &Entry)| {
            looked_at += 1;
            *last = Some(Arc::clone(key));
            let object = entry.object().filter(|it| filter.selects(it));
            ready.extend(object.cloned());
        };
        match indexed {
            Some(indexed) => indexed
                .under(scope, Bound::Excluded(after))
                .take(LOOKED_AT_MAX)
                .for_each(look_at),
            None => self
                .state
                .after(scope, after)
                .take(LOOKED_AT_MAX)
                .for_each(look_at),
        }
        self.done = looked_at < LOOKED_AT_MAX;
        looked_at
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::meta::{FieldPath, FieldSchema, FieldSelector};
    use crate::storage::SelectionPredicate;

    const NODES: usize = 4;

    #[test]
    fn the_state_of_one_node_is_read_by_the_index_alone() {
        let schema = FieldSchema::new([FieldPath {
            name: "spec.nodeName".into(),
            default: "",
            from: &[],
            indexed: true,
        }]);
        let mut state = SnapshotMap::with_indexes(&schema);
        let of_node = 2 * LOOKED_AT_MAX + 1;
        for number in 0..NODES * of_node {
            let name = format!("{number:04}");
            let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name},
                "spec": {"nodeName": format!("n{}", number % NODES)}});
            let object = Object::from_value(&pod, 1, &schema).expect("an object");
            let key = format!("/pods/d/{name}").into();
            state.insert(key, Entry::Readable(Arc::new(object)));
        }
        let predicate = SelectionPredicate {
            field: FieldSelector::parse("spec.nodeName=n3").expect("a selector"),
            ..SelectionPredicate::default()
        };
        let filter = Filter::new("/pods/", true, predicate);
        let mut interval = StateInterval::new(state, false);
        let mut looked_at = Vec::new();
        while !interval.done {
            looked_at.push(interval.advance(&filter));
        }
        assert_eq!(looked_at, [LOOKED_AT_MAX, LOOKED_AT_MAX, 1]);
        let names: Vec<_> = interval.ready.iter().map(|it| it.name()).collect();
        let expected: Vec<_> = (0..of_node)
            .map(|number| format!("{:04}", NODES * number + 3))
            .collect();
        assert_eq!(names, expected);
    }
}
