//! The watchers of a type, and the dispatch of events to them.
//!
//! The registry's lock is held while a batch is published and told, and by nobody for long but the
//! dispatcher: watchers come and go through [`registrations`](crate::ring::registrations). Whoever holds it
//! sees either none of a batch or all of it, which is why a bookmark can say that everything up to a
//! revision has been told.
//!
//! Whatever is told here is told to those who have come by then: each method applies the registrations first. What
//! is told has been published before that, so who comes later finds it without being told.

use std::sync::Arc;
use std::task::Waker;

use super::bookmark::{BookmarkSchedule, Bookmarks};
use super::event::CacheEvent;
use super::filter::Filter;
use super::index::Index;
use crate::clock::Instant;
use crate::ring::channel;
use crate::ring::registrations::{Registration, Registrations};

/// How many signals wait for a watcher before it is parked. A watcher that keeps up has one or two; so
/// many make 256 bytes, and a burst that is longer is read from the window as well.
pub(super) const SIGNALS_MAX: usize = 32;

/// The dispatcher's half of a watcher's channel.
pub(super) type Sender = channel::Sender<SIGNALS_MAX>;

/// The watcher's half.
pub(super) type Receiver = channel::Receiver<SIGNALS_MAX>;

/// The watchers of a type.
#[derive(Debug)]
pub(super) struct Watchers {
    /// Watchers that were added and removed since the index was last brought up to date.
    registrations: Registrations<NewWatcher>,
    /// The watchers, by their selection.
    index: Index,
    /// When bookmarks are due.
    schedule: BookmarkSchedule,
}

/// A watcher as its registration hands it to the dispatcher.
#[derive(Debug)]
pub(super) struct NewWatcher {
    /// The channel to the watcher.
    pub(super) sender: Sender,
    /// The objects that it selects.
    pub(super) filter: Arc<Filter>,
    /// The bookmarks that it asked for, if any.
    pub(super) bookmarks: Option<Bookmarks>,
    /// When it was registered.
    pub(super) came: Instant,
}

impl Watchers {
    /// Makes a set without watchers.
    pub(super) fn new(registrations: Registrations<NewWatcher>, now: Instant) -> Self {
        Self {
            registrations,
            index: Index::default(),
            schedule: BookmarkSchedule::new(now),
        }
    }

    /// Brings the index and the schedule up to date with the registrations that wait.
    pub(super) fn apply_registrations(&mut self) {
        for registration in self.registrations.take() {
            note(&mut self.index, &mut self.schedule, registration);
        }
    }

    /// Tells everyone who is concerned of events, whose numbers rise from `first`. The caller wakes
    /// them. Returns how often there was no room.
    pub(super) fn dispatch(
        &mut self,
        first: u64,
        events: &[Arc<CacheEvent>],
        wake: &mut Vec<Waker>,
    ) -> u64 {
        self.apply_registrations();
        let mut overflows = 0;
        for (sequence, event) in (first..).zip(events) {
            overflows += self.index.dispatch(sequence, event, wake);
        }
        overflows
    }

    /// Sends a bookmark to everyone who is due. The revision is one up to which everything has been
    /// told.
    pub(super) fn send_due_bookmarks(
        &mut self,
        now: Instant,
        revision: u64,
        wake: &mut Vec<Waker>,
    ) {
        self.apply_registrations();
        let index = &mut self.index;
        let send = |number| index.bookmark(number, revision, wake);
        self.schedule.take_due(now, send);
    }

    /// Ends all watches, because what they would be told next is not known any more.
    pub(super) fn end_all(&mut self, wake: &mut Vec<Waker>) {
        self.apply_registrations();
        self.index.end_all(|_| None, wake);
        self.schedule.clear();
    }

    /// Ends all watches for good, with a last bookmark for those who want bookmarks.
    pub(super) fn drain(&mut self, bookmark: Option<u64>, wake: &mut Vec<Waker>) {
        for registration in self.registrations.close() {
            note(&mut self.index, &mut self.schedule, registration);
        }
        let schedule = &self.schedule;
        let last = |number| bookmark.filter(|_| schedule.wants(number));
        self.index.end_all(last, wake);
        self.schedule.clear();
    }

    /// How many entries the schedule of bookmarks has.
    #[cfg(test)]
    pub(super) fn scheduled(&mut self) -> usize {
        self.apply_registrations();
        self.schedule.entries()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&mut self) -> usize {
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
