//! The window of the newest events of a type, and the limits of how many are kept. Readers see them as a
//! [`CacheView`](super::view::CacheView).
//!
//! ```text
//!   base               log of segments
//!   state, revision    [first] [first+1] ... | ... | ... [end-1]     end: the next event's number
//! ```
//!
//! The newest event carries the state after it, and every few others do (see [`super::view`]), so the log is all that
//! readers need: the newest state is that of the newest event, or the base's if there is none. A batch is appended,
//! then published at once: readers see all of it or nothing, and changes that share a revision are never seen apart.
//!
//! Sequence numbers never fall and never repeat, not even when the type is listed again, so a stale position is found
//! evicted rather than taken for another event.
//!
//! # How much is kept
//!
//! kube-apiserver doubles and halves a ring between 100 and 102,400 slots, so that it holds the events of 75 s. A log
//! needs no slots in advance, so these numbers are the rule itself: an event is evicted when it is older than 75 s and
//! 100 newer ones are kept, or when 102,400 newer ones are, or when the bytes of the window exceed their limit.
//!
//! Whole segments are evicted, so the window has up to one segment more than the rule says: a segment is evicted when
//! its last event may be. Only the limit of bytes is exact, whenever a batch has been published; then the window has up
//! to one segment less. A segment is sealed as soon as it holds a sixteenth of the most that is kept, or spans a
//! sixteenth of the age; and it has at most 256 events. The segment of a quiet type is evicted by the clock alone, even
//! while it is still open; the type's newest state stays, as the base.
//!
//! When memory is short, everything older than 5 s may be evicted, oldest segment first ([`WindowWriter::shrink`]).
//!
//! # Too old
//!
//! `base.revision` is the revision of the last evicted event, or of the list if none has been. Every later event is
//! here, so a watch can resume from any revision at or after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::base::Base;
use super::event::CacheEvent;
use super::snapshot::SnapshotMap;
use super::view::CacheView;
use crate::clock::Instant;
use crate::ring::log::{EvictedSegments, Log, Writer, log};

/// Maximum number of events that share a state. More share the copies of the map's nodes that the state of each
/// would have of its own, and have readers of an exact revision apply more events to the state before it.
pub(crate) const STATE_EVENTS_MAX: usize = 64;

/// Minimum number of segments in a full window.
const WINDOW_SEGMENTS_MIN: u32 = 16;

/// The age below which events are kept however short memory is: a watcher that keeps up has read older ones, so that
/// none is ended.
pub(crate) const WINDOW_AGE_MIN: Duration = Duration::from_secs(5);

/// The limits of a type's window of events.
#[derive(Clone, Copy, Debug)]
pub struct WindowLimits {
    /// The age below which events are kept, if the other limits allow; up to a sixteenth older ones are too.
    pub age: Duration,
    /// The number of events that are kept however old they are.
    pub events_min: usize,
    /// Maximum number of events that are kept, plus up to a sixteenth.
    pub events_max: usize,
    /// Maximum number of bytes that the events may keep alive.
    pub bytes_max: usize,
}

impl Default for WindowLimits {
    /// Returns kube-apiserver's limits, and 256 MiB: enough for 75 s of a thousand changes a second of objects of 1
    /// KiB.
    fn default() -> Self {
        Self {
            age: Duration::from_secs(75),
            events_min: 100,
            events_max: 102_400,
            bytes_max: 256 << 20,
        }
    }
}

impl WindowLimits {
    /// Returns the default limits, with fewer bytes where the process has little memory: a window may have an eighth of
    /// it. So even a type whose objects are all deleted at once, which moves them from the state into the window and
    /// creates the copies that its watchers are sent, leaves room for others.
    #[must_use]
    pub fn within(memory_bytes: u64) -> Self {
        let default = Self::default();
        let part = usize::try_from(memory_bytes / 8).unwrap_or(usize::MAX);
        Self {
            bytes_max: default.bytes_max.min(part),
            ..default
        }
    }
}

/// Creates the two halves of an empty window.
pub(crate) fn window(limits: WindowLimits) -> (WindowWriter, Window) {
    let (writer, log) = log(Base::default());
    let window = Window { log };
    let writer = WindowWriter {
        log: writer,
        window: window.clone(),
        limits,
        segments: VecDeque::new(),
        events: 0,
        bytes: 0,
        states: States::default(),
    };
    (writer, window)
}

/// The reading half of a window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    log: Log<Arc<CacheEvent>, Base>,
}

impl Window {
    /// Returns a view of the window as it is now.
    pub(crate) fn view(&self) -> CacheView {
        CacheView::new(self.log.read())
    }
}

/// The writing half of a window.
#[derive(Debug)]
pub(crate) struct WindowWriter {
    log: Writer<Arc<CacheEvent>, Base>,
    /// The same log as readers see it.
    window: Window,
    limits: WindowLimits,
    /// The figures of the log's segments, the oldest first.
    segments: VecDeque<Segment>,
    /// The number of events in the segments.
    events: usize,
    /// The bytes that the events keep alive.
    bytes: usize,
    states: States,
}

/// The states that are kept for readers of exact revisions, beside the newest one. Each costs the nodes of the map that
/// it shares with no other, which the events since the one before it have replaced: 17 KB where these are the same ones
/// again and again, 111 KB among 100,000 objects that change in any order.
#[derive(Debug, Default)]
struct States {
    /// The sequence number of the last event, before the newest with a state, whose state is kept.
    kept: u64,
    /// The newest event with a state, and its sequence number.
    newest: Option<(u64, Arc<CacheEvent>)>,
    /// Events whose states need not be kept once the appended events are published.
    superseded: Vec<Arc<CacheEvent>>,
}

/// The figures of a segment of the log.
#[derive(Debug)]
struct Segment {
    events: usize,
    /// The bytes that its events keep alive.
    bytes: usize,
    /// The instant at which its first event was received.
    began: Instant,
    /// The instant at which its last event was received.
    ended: Instant,
}

impl States {
    /// Begins with the base before the event of a sequence number.
    fn new(first: u64) -> Self {
        Self {
            kept: first,
            ..Self::default()
        }
    }

    /// Takes note of an event that is appended. If it has a state, the one before that may be dropped, unless the event
    /// lies too far after the last that is kept.
    fn append(&mut self, number: u64, event: &Arc<CacheEvent>) {
        if event.state.get().is_none() {
            return;
        }
        match self.newest.replace((number, Arc::clone(event))) {
            Some((_, before)) if number - self.kept < STATE_EVENTS_MAX as u64 => {
                self.superseded.push(before);
            }
            Some((before, _)) => self.kept = before,
            None => {}
        }
    }

    /// Lets go of an event that has been evicted: no event before `first` is there any more.
    fn evicted(&mut self, first: u64) {
        self.newest.take_if(|(number, _)| *number < first);
    }

    /// Drops the states of superseded events. Readers have newer ones, or can tell them from older ones.
    fn published(&mut self) {
        for event in self.superseded.drain(..) {
            event.state.forget();
        }
    }
}

impl WindowWriter {
    /// Replaces all events by a list. A reader that waits for the next event finds it evicted.
    pub(crate) fn reset(
        &mut self,
        revision: u64,
        state: SnapshotMap,
    ) -> EvictedSegments<Arc<CacheEvent>> {
        self.segments.clear();
        self.events = 0;
        self.bytes = 0;
        let state = Arc::new(state);
        let before = self.log.reset(Base { revision, state });
        self.states = States::new(self.log.end());
        before
    }

    /// Appends an event, which readers see after [`WindowWriter::publish`].
    pub(crate) fn append(&mut self, event: Arc<CacheEvent>) {
        let now = event.received;
        let bytes = event.bytes();
        self.states.append(self.log.end(), &event);
        if self
            .segments
            .back()
            .is_some_and(|it| self.is_coarse(it, now))
        {
            self.log.seal();
        }
        if self.log.append(event) {
            self.segments.push_back(Segment {
                events: 0,
                bytes: 0,
                began: now,
                ended: now,
            });
        }
        if let Some(newest) = self.segments.back_mut() {
            newest.events += 1;
            newest.bytes += bytes;
            newest.ended = now;
        }
        self.events += 1;
        self.bytes += bytes;
    }

    /// Publishes the appended events at once.
    pub(crate) fn publish(&mut self) {
        self.log.publish();
        self.states.published();
    }

    /// Evicts the segments that exceed the limits. All events must be published.
    pub(crate) fn evict(&mut self, now: Instant) {
        let mut count = 0;
        while self.oldest_must_go(now) && self.forget_oldest() {
            count += 1;
        }
        self.evict_segments(count);
    }

    /// Evicts the oldest segment though the limits would keep it, if it is old enough.
    pub(crate) fn shrink(&mut self, now: Instant) {
        if self.can_shrink(now) && self.forget_oldest() {
            self.evict_segments(1);
        }
    }

    /// Returns true if the oldest segment can be evicted when memory is short.
    pub(crate) fn can_shrink(&self, now: Instant) -> bool {
        let age = |oldest: &Segment| now.saturating_duration_since(oldest.ended);
        let oldest = self.segments.front();
        oldest.is_some_and(|oldest| age(oldest) >= WINDOW_AGE_MIN)
    }

    /// Removes the figures of the oldest segment; false if there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some(segment) = self.segments.pop_front() else {
            return false;
        };
        self.events -= segment.events;
        self.bytes -= segment.bytes;
        true
    }

    /// Evicts the oldest segments from the log.
    fn evict_segments(&mut self, count: usize) {
        let Some(last) = self.log.last_of(count) else {
            return;
        };
        let oldest_kept = self.end() - self.events as u64;
        let base = Base {
            revision: last.revision,
            state: Arc::new(self.window.view().state_before(oldest_kept)),
        };
        drop(self.log.evict(count, base));
        self.states.evicted(oldest_kept);
    }

    /// Returns the sequence number of the next event.
    pub(crate) fn end(&self) -> u64 {
        self.log.end()
    }

    /// Returns the bytes that the events keep alive.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns when the oldest event was received.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.segments.front().map(|segment| segment.began)
    }

    /// Returns how many events are kept.
    pub(crate) fn len(&self) -> usize {
        self.events
    }

    /// Returns true if a segment is so large that the next event must begin another.
    fn is_coarse(&self, segment: &Segment, now: Instant) -> bool {
        let limits = &self.limits;
        let part = WINDOW_SEGMENTS_MIN as usize;
        let age = now.saturating_duration_since(segment.began);
        segment.events >= limits.events_max / part
            || segment.bytes >= limits.bytes_max / part
            || age >= limits.age / WINDOW_SEGMENTS_MIN
    }

    fn oldest_must_go(&self, now: Instant) -> bool {
        let limits = &self.limits;
        let Some(oldest) = self.segments.front() else {
            return false;
        };
        let aged = now.saturating_duration_since(oldest.ended) > limits.age;
        let others = self.events - oldest.events;
        self.bytes > limits.bytes_max
            || others >= limits.events_max
            || (aged && others >= limits.events_min)
    }
}
