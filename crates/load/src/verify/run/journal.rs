//! The journal, into which all clients write what they are told, as they are told.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::measure::{Gauges, Recorder};
use crate::time::{Instant, nanos, now};
use crate::verify::history::{
    Get, History, Item, ListRead, Nanos, SeenItem, Selector, Session, Start, WatchEnd, Watcher,
    Write, WriteAnswer, WriteId,
};

/// The history of a run while it is made.
#[derive(Debug)]
pub(super) struct Journal {
    begun: Instant,
    /// The objects of the run. A server may still show those of an earlier one.
    keys: Range<u32>,
    history: Mutex<History>,
    /// The counters of the progress: answered writes, and events.
    gauges: Gauges,
    events: Arc<Recorder>,
}

impl Journal {
    pub(super) fn new(keys: Range<u32>) -> Self {
        let events = Arc::new(Recorder::default());
        Self {
            begun: now(),
            keys,
            history: Mutex::default(),
            gauges: Gauges {
                recorders: vec![Arc::clone(&events)],
                ..Gauges::default()
            },
            events,
        }
    }

    pub(super) fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Returns the time since the run began.
    pub(super) fn now(&self) -> Nanos {
        nanos(now().duration_since(self.begun))
    }

    /// Locks the history so far.
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        // Whoever panicked left a whole entry or none.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the whole history, as the run is over.
    pub(super) fn finish(self) -> History {
        let history = self.history.into_inner();
        history.unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down a write that is about to be sent.
    pub(super) fn begin(&self, write: impl FnOnce(Nanos) -> Write) -> WriteId {
        let mut history = self.history();
        let id = WriteId(u32::try_from(history.writes.len()).unwrap_or(u32::MAX));
        history.writes.push(write(self.now()));
        id
    }

    /// Takes down the answer to a write, or that there was none.
    pub(super) fn answer(&self, id: WriteId, answer: impl FnOnce(Nanos) -> WriteAnswer) {
        let answer = answer(self.now());
        self.gauges.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(write) = self.history().writes.get_mut(id.0 as usize) {
            write.answer = answer;
        }
    }

    /// Takes down a list, without the objects of other runs. Returns its place among the lists, and what is left of
    /// it.
    pub(super) fn read(&self, mut read: ListRead) -> (usize, ListRead) {
        for page in &mut read.pages {
            page.objects.retain(|it| self.keys.contains(&it.key.0));
        }
        let mut history = self.history();
        history.reads.push(read.clone());
        (history.reads.len() - 1, read)
    }

    /// Takes down a read of one object.
    pub(super) fn get(&self, get: Get) {
        self.history().gets.push(get);
    }

    /// Takes down a watcher without watches. Returns its place among the watchers.
    pub(super) fn watcher(&self, name: String, selector: Selector) -> usize {
        let mut history = self.history();
        history.watchers.push(Watcher {
            name,
            selector,
            sessions: Vec::new(),
        });
        history.watchers.len() - 1
    }

    /// Takes down that a watch was opened, at a time before it was asked for.
    pub(super) fn open(&self, watcher: usize, opened: Nanos, start: Start) {
        let session = Session {
            opened,
            start,
            seen: Vec::new(),
            end: WatchEnd::Open,
        };
        self.history().watchers[watcher].sessions.push(session);
    }

    /// Takes down what came over the newest watch.
    pub(super) fn see(&self, watcher: usize, item: Item) {
        let at = self.now();
        if let Item::Event { object, .. } = &item {
            if !self.keys.contains(&object.key.0) {
                return;
            }
            self.events.lock().received += 1;
        }
        if let Some(session) = self.history().watchers[watcher].sessions.last_mut() {
            session.seen.push(SeenItem { at, item });
        }
    }

    /// Takes down how the newest watch ended.
    pub(super) fn end(&self, watcher: usize, end: WatchEnd) {
        if let Some(session) = self.history().watchers[watcher].sessions.last_mut() {
            session.end = end;
        }
    }
}
