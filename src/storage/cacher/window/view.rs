//! The snapshot of a type's cache that one read works on: the newest state, and the events that led there.
//!
//! Creating a view copies nothing and waits for nobody. It keeps the events that it shows alive, so readers take what
//! they need out of it and drop it before they wait for anything.
//!
//! The newest event has the state after it, and of the others one of every few. The writer drops the others' states
//! when a newer event has one, maybe while a view shows such an event as the newest. The state after an event without
//! one is that of the last event before it that has one, or of the base, with the events since then applied to it.

use std::sync::Arc;

use super::base::Base;
use super::event::CacheEvent;
use super::snapshot::SnapshotMap;
use crate::clock::Instant;
use crate::ring::log::{Reader, Slot};

/// The snapshot of a type's cache that one read works on.
pub(crate) struct CacheView {
    log: Reader<Arc<CacheEvent>, Base>,
}

impl CacheView {
    /// Creates a view over a reader of the window's log.
    pub(crate) fn new(log: Reader<Arc<CacheEvent>, Base>) -> Self {
        Self { log }
    }

    /// Returns the revision of the type's last change, or of the list if there was none since. Every change of the type
    /// up to here is included; the feed's own revision may be higher.
    pub(crate) fn revision(&self) -> u64 {
        let base = self.log.base();
        let newest = self.log.last();
        newest.map_or(base.revision, |event| event.revision)
    }

    /// Returns the objects as of the view's revision, by key.
    pub(crate) fn state(&self) -> Arc<SnapshotMap> {
        let Some(newest) = self.log.last() else {
            return Arc::clone(&self.log.base().state);
        };
        let state = newest.state.get();
        state.unwrap_or_else(|| Arc::new(self.state_before(self.end())))
    }

    /// Returns the objects as of a revision that the cache has reached; `None` if it has left the window.
    pub(crate) fn state_at(&self, revision: u64) -> Option<SnapshotMap> {
        Some(self.state_before(self.after(revision)?))
    }

    /// Returns the objects before the event of a sequence number, which must not have been evicted.
    pub(crate) fn state_before(&self, number: u64) -> SnapshotMap {
        let mut since = Vec::new();
        let mut state = None;
        for number in (self.first()..number).rev() {
            let Slot::Value(event) = self.log.slot(number) else {
                break;
            };
            state = event.state.get();
            if state.is_some() {
                break;
            }
            since.push(event);
        }
        let base = &self.log.base().state;
        let mut state = state.as_ref().unwrap_or(base).as_ref().clone();
        since.iter().rev().for_each(|event| event.apply(&mut state));
        state
    }

    /// Returns the oldest revision that a watch can resume from.
    pub(crate) fn base_revision(&self) -> u64 {
        self.log.base().revision
    }

    /// Returns the sequence number of the first event after a revision; `None` if the revision is too old.
    pub(crate) fn after(&self, revision: u64) -> Option<u64> {
        (revision >= self.base_revision())
            .then(|| self.log.partition_point(|event| event.revision <= revision))
    }

    /// Returns the sequence number of the first event that was not received at a time of which the predicate is true.
    /// It must be true of the times up to one, and of none after it.
    pub(crate) fn received_before(&self, predicate: impl Fn(Instant) -> bool) -> u64 {
        self.log.partition_point(|event| predicate(event.received))
    }

    /// Returns the sequence number of the oldest event.
    pub(crate) fn first(&self) -> u64 {
        self.log.first()
    }

    /// Returns the sequence number of the next event.
    pub(crate) fn end(&self) -> u64 {
        self.log.end()
    }

    /// Returns the slot of a sequence number.
    pub(crate) fn slot(&self, number: u64) -> Slot<'_, Arc<CacheEvent>> {
        self.log.slot(number)
    }

    /// Returns the events from a sequence number on.
    pub(crate) fn events(&self, from: u64) -> impl Iterator<Item = &Arc<CacheEvent>> {
        self.log.values(from)
    }
}
