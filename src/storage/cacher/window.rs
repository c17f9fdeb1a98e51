//! The newest events of a type, each with a sequence number, and the state before the first.
//!
//! ```text
//!   base             events
//!   state, revision  [first] [first+1] ... [end-1]     end: the next event's number
//! ```
//!
//! The window is a value: a copy shares its content, so the writer publishes one with each batch
//! and readers never wait. Sequence numbers never fall and never repeat, not even when the type is
//! listed anew, so a stale position is found missing rather than taken for another.
//!
//! # How much is kept
//!
//! kube-apiserver doubles and halves a ring between 100 and 102,400 slots, so that it holds the
//! events of 75 s. A deque needs no slots in advance, so the rule is the aim itself: an event goes
//! when it is older than 75 s and 100 newer ones are kept, or when 102,400 newer ones are, or when
//! the bytes of the window exceed their limit.
//!
//! # Too old
//!
//! `base.revision` is the revision of the last event that went, or of the list that began it all.
//! Every later event is here, so a watch can resume from any revision at or after it.

use std::sync::Arc;
use std::time::Duration;

use imbl::Vector;

use super::event::CacheEvent;
use super::snapshot::SnapshotMap;
use crate::clock::Instant;

/// How much history is kept.
#[derive(Clone, Copy, Debug)]
pub struct WindowLimits {
    /// Events younger than this are kept, if the other limits allow.
    pub age: Duration,
    /// So many events are kept however old they are.
    pub events_min: usize,
    /// So many events are kept at most.
    pub events_max: usize,
    /// So many bytes are kept at most.
    pub bytes_max: usize,
}

impl Default for WindowLimits {
    /// kube-apiserver's limits, and 128 MiB.
    fn default() -> Self {
        Self {
            age: Duration::from_secs(75),
            events_min: 100,
            events_max: 102_400,
            bytes_max: 128 << 20,
        }
    }
}

/// A window of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    events: Vector<Arc<CacheEvent>>,
    /// The sequence number of the first event.
    first: u64,
    /// The revision that the window begins after.
    base_revision: u64,
    /// The state at `base_revision`.
    base_state: SnapshotMap,
    /// What the events keep alive.
    bytes: usize,
}

/// What stands at a sequence number.
#[derive(Debug)]
pub(super) enum Slot<'a> {
    /// An event.
    Event(&'a Arc<CacheEvent>),
    /// No event yet.
    Future,
    /// No event any more.
    Gone,
}

impl Window {
    /// Begins anew with a list; the events go. One number is left out, so that whoever waited for
    /// the next event finds it gone.
    pub(super) fn reset(&mut self, revision: u64, state: SnapshotMap) {
        self.first = self.end() + 1;
        self.events = Vector::new();
        self.base_revision = revision;
        self.base_state = state;
        self.bytes = 0;
    }

    /// Appends an event.
    pub(super) fn push(&mut self, event: Arc<CacheEvent>) {
        self.bytes += event.bytes();
        self.events.push_back(event);
    }

    /// Lets go of what the limits do not cover any more, and returns it.
    pub(super) fn evict(&mut self, now: Instant, limits: &WindowLimits) -> Vec<Arc<CacheEvent>> {
        let mut evicted = Vec::new();
        while self.front_must_go(now, limits) {
            let Some(event) = self.events.pop_front() else {
                break;
            };
            self.first += 1;
            self.bytes -= event.bytes();
            self.base_revision = event.revision;
            self.base_state = event.state.clone();
            evicted.push(event);
        }
        evicted
    }

    fn front_must_go(&self, now: Instant, limits: &WindowLimits) -> bool {
        let Some(front) = self.events.front() else {
            return false;
        };
        let aged = now.saturating_duration_since(front.received) > limits.age;
        self.events.len() > limits.events_max
            || self.bytes > limits.bytes_max
            || (aged && self.events.len() > limits.events_min)
    }

    /// The sequence number of the next event.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The oldest revision that a watch can resume from.
    pub(super) fn base_revision(&self) -> u64 {
        self.base_revision
    }

    /// The sequence number of the first event after a revision; `None` if the revision is too old.
    pub(super) fn after(&self, revision: u64) -> Option<u64> {
        let index = self.index_after(revision)?;
        Some(self.first + index as u64)
    }

    /// The state at a revision; `None` if the revision is too old. Of a revision that the cache has
    /// not reached, this says nothing.
    pub(super) fn state_at(&self, revision: u64) -> Option<&SnapshotMap> {
        let before = self.index_after(revision)?.checked_sub(1);
        before.map_or(Some(&self.base_state), |index| {
            self.events.get(index).map(|event| &event.state)
        })
    }

    /// How many events are at or before a revision; `None` if that cannot be known.
    fn index_after(&self, revision: u64) -> Option<usize> {
        if revision < self.base_revision {
            return None;
        }
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.events[middle].revision <= revision {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// What stands at a sequence number.
    pub(super) fn slot(&self, sequence: u64) -> Slot<'_> {
        let Some(index) = sequence.checked_sub(self.first) else {
            return Slot::Gone;
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.events.get(index).map_or(Slot::Future, Slot::Event)
    }

    /// How many events are kept.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}
