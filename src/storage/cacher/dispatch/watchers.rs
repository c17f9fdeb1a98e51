//! The watchers of a type, and the dispatch of events to them.
//!
//! The registry's lock is held while a batch is published and sent, and for long only by the dispatcher: watchers are
//! added and removed through [`registrations`](crate::ring::registrations). Its holder sees either none of a batch or
//! all of it, which is why a bookmark can state that everything up to a revision has been sent.
//!
//! Each method applies the pending registrations first, so it reaches every watcher that has registered by then. Its
//! events have been published before that, so a watcher that registers later finds them in the window.

use std::sync::Arc;

use super::bookmark::{BookmarkSchedule, Bookmarks};
use super::filter::Filter;
use super::index::{DispatchResult, Index, WakeList};
use super::signal_channel::Sender;
use crate::clock::Instant;
use crate::ring::registrations::{Registration, Registrations};
use crate::storage::cacher::window::event::CacheEvent;

/// The watchers of a type.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// Watchers that were added and removed since the index was last brought up to date.
    registrations: Registrations<NewWatcher>,
    /// The watchers, by their selection.
    index: Index,
    /// The schedule of bookmarks.
    schedule: BookmarkSchedule,
}

/// A watcher as its registration hands it to the dispatcher.
#[derive(Debug)]
pub(crate) struct NewWatcher {
    /// The channel to the watcher.
    pub(crate) sender: Sender,
    /// The objects that it selects.
    pub(crate) filter: Arc<Filter>,
    /// The bookmarks that it wants, if any.
    pub(crate) bookmarks: Option<Bookmarks>,
    /// The instant at which the watcher was registered.
    pub(crate) came: Instant,
}

impl Watchers {
    /// Makes a set without watchers.
    pub(crate) fn new(registrations: Registrations<NewWatcher>, now: Instant) -> Self {
        Self {
            registrations,
            index: Index::default(),
            schedule: BookmarkSchedule::new(now),
        }
    }

    /// Applies the pending registrations to the index and the schedule.
    pub(crate) fn apply_registrations(&mut self) {
        for registration in self.registrations.take() {
            note(&mut self.index, &mut self.schedule, registration);
        }
    }

    /// Sends events, whose numbers rise from `first`, to every watcher that they concern. The caller wakes the watchers
    /// whose wakers are added to `wake`.
    pub(crate) fn dispatch(
        &mut self,
        first: u64,
        events: &[Arc<CacheEvent>],
        wake: &mut WakeList,
    ) -> DispatchResult {
        self.apply_registrations();
        let mut all = DispatchResult::default();
        for (sequence, event) in (first..).zip(events) {
            let one = self.index.dispatch(sequence, event, wake);
            all.overflows += one.overflows;
            all.refused_by_shards += one.refused_by_shards;
        }
        all
    }

    /// Sends a bookmark to every watcher that is due. Every event up to the revision must have been sent.
    pub(crate) fn send_due_bookmarks(&mut self, now: Instant, revision: u64, wake: &mut WakeList) {
        self.apply_registrations();
        let index = &mut self.index;
        let send = |number| index.bookmark(number, revision, wake);
        self.schedule.take_due(now, send);
    }

    /// Ends all watches, because the events after the last ones sent are not known.
    pub(crate) fn end_all(&mut self, wake: &mut WakeList) {
        self.apply_registrations();
        self.index.end_all(|_| None, wake);
        self.schedule.clear();
    }

    /// Ends all watches for good, with a last bookmark for those that want bookmarks.
    pub(crate) fn drain(&mut self, bookmark: Option<u64>, wake: &mut WakeList) {
        for registration in self.registrations.close() {
            note(&mut self.index, &mut self.schedule, registration);
        }
        let schedule = &self.schedule;
        let last = |number| bookmark.filter(|_| schedule.wants(number));
        self.index.end_all(last, wake);
        self.schedule.clear();
    }

    /// Returns how many entries the schedule of bookmarks has.
    #[cfg(test)]
    pub(crate) fn scheduled(&mut self) -> usize {
        self.apply_registrations();
        self.schedule.entries()
    }

    /// Returns how many watchers there are.
    #[cfg(test)]
    pub(crate) fn len(&mut self) -> usize {
        self.apply_registrations();
        self.index.len()
    }
}

/// Applies one registration.
fn note(
    index: &mut Index,
    schedule: &mut BookmarkSchedule,
    registration: Registration<NewWatcher>,
) {
    match registration {
        Registration::Add(number, watcher) => {
            if let Some(bookmarks) = watcher.bookmarks {
                schedule.add(number, bookmarks, watcher.came);
            }
            index.insert(number, watcher.filter, watcher.sender);
        }
        Registration::Remove(number) => {
            schedule.forget(number);
            index.remove(number);
        }
    }
}
