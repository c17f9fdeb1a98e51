//! Who watches a type, and who hears of what.
//!
//! Watchers are found by what they watch: a folder of keys or a single key. An event asks at its
//! key and at each folder above it, so a watch of one namespace costs nothing when another changes.
//!
//! The registry's lock is held while a batch is published and told. Whoever holds it sees either
//! none of a batch or all of it, which is why a bookmark can say that everything up to a revision
//! has been told.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use super::bookmark::{BookmarkSchedule, Bookmarks};
use super::event::CacheEvent;
use super::filter::{Filter, folders};
use super::mailbox::{Bookmark, Mailbox};
use crate::clock::Instant;

/// The watchers of a type.
#[derive(Debug)]
pub(super) struct Watchers {
    /// Which filling of the cache the watchers belong to.
    generation: u64,
    /// Whether watches are ended for good.
    draining: bool,
    /// The next watcher's number.
    next_id: u64,
    /// By folder or key, then by number.
    scopes: HashMap<Box<str>, HashMap<u64, Arc<Registered>>>,
    /// When bookmarks are due.
    schedule: BookmarkSchedule,
}

/// A watcher as the dispatcher knows it.
#[derive(Debug)]
pub(super) struct Registered {
    id: u64,
    /// What it watches.
    pub(super) filter: Filter,
    /// Where it is told.
    pub(super) mailbox: Mailbox,
    /// The bookmarks it wants, if any.
    pub(super) bookmarks: Option<Bookmarks>,
}

impl Watchers {
    /// No watchers.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            generation: 0,
            draining: false,
            next_id: 0,
            scopes: HashMap::new(),
            schedule: BookmarkSchedule::new(now),
        }
    }

    /// Takes a watcher in, parked, and says to which generation it belongs. `None` while draining.
    pub(super) fn register(
        &mut self,
        now: Instant,
        filter: Filter,
        bookmarks: Option<Bookmarks>,
    ) -> Option<(u64, Arc<Registered>)> {
        if self.draining {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let scope = Box::from(filter.scope());
        let watcher = Arc::new(Registered {
            id,
            filter,
            mailbox: Mailbox::parked(),
            bookmarks,
        });
        self.schedule.add(now, &watcher);
        let watchers = self.scopes.entry(scope).or_default();
        watchers.insert(id, Arc::clone(&watcher));
        Some((self.generation, watcher))
    }

    /// Forgets a watcher.
    pub(super) fn unregister(&mut self, watcher: &Registered) {
        let scope = watcher.filter.scope();
        if let Some(watchers) = self.scopes.get_mut(scope) {
            watchers.remove(&watcher.id);
            if watchers.is_empty() {
                self.scopes.remove(scope);
            }
        }
    }

    /// Tells everyone who is concerned of an event. The caller wakes them.
    pub(super) fn dispatch(&self, sequence: u64, event: &CacheEvent, wake: &mut Vec<Waker>) {
        for scope in folders(&event.key).chain(std::iter::once(&*event.key)) {
            let Some(watchers) = self.scopes.get(scope) else {
                continue;
            };
            for watcher in watchers.values() {
                if watcher.filter.concerns(event) {
                    wake.extend(watcher.mailbox.push(sequence));
                }
            }
        }
    }

    /// Sends a bookmark to everyone who is due.
    pub(super) fn send_due_bookmarks(
        &mut self,
        now: Instant,
        bookmark: Bookmark,
        wake: &mut Vec<Waker>,
    ) {
        for watcher in self.schedule.due(now) {
            wake.extend(watcher.mailbox.bookmark(bookmark));
            self.schedule.add(now, &watcher);
        }
    }

    /// Ends all watches, because what they would be told next is not known any more.
    pub(super) fn end_all(&mut self, wake: &mut Vec<Waker>) {
        self.generation += 1;
        for watcher in self.take_all() {
            wake.extend(watcher.mailbox.end());
        }
    }

    /// Ends all watches for good, with a last bookmark for those who want bookmarks.
    pub(super) fn drain(&mut self, bookmark: Option<Bookmark>, wake: &mut Vec<Waker>) {
        self.draining = true;
        for watcher in self.take_all() {
            if let Some(bookmark) = bookmark.filter(|_| watcher.bookmarks.is_some()) {
                wake.extend(watcher.mailbox.bookmark(bookmark));
            }
            wake.extend(watcher.mailbox.end());
        }
    }

    fn take_all(&mut self) -> impl Iterator<Item = Arc<Registered>> {
        let scopes = std::mem::take(&mut self.scopes);
        scopes.into_values().flat_map(HashMap::into_values)
    }

    /// Which filling of the cache a watcher would now belong to.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.scopes.values().map(HashMap::len).sum()
    }
}
