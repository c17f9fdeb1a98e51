//! The registration of a watcher with the dispatcher of its type: events are sent to it from its creation to its drop.

use std::sync::Arc;

use super::bookmark::Bookmarks;
use super::filter::Filter;
use super::signal_channel::Receiver;
use super::watch_cache::WatchCache;
use super::watchers::NewWatcher;
use crate::ring::channel::channel;

/// The watcher's side of a registration: its selection and the channel that the dispatcher pushes to.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// The cache of the watched type.
    pub(crate) cache: Arc<WatchCache>,
    /// The watcher's selection.
    pub(crate) filter: Arc<Filter>,
    /// True if the watcher selects everything in its scope.
    pub(crate) whole_scope: bool,
    /// The channel of its events. It begins overflowed, so that the watcher first reads the window.
    pub(crate) receiver: Receiver,
    /// The watcher's number in the registration queue; reused after the watcher is dropped.
    number: u32,
}

impl Attachment {
    /// Attaches a watcher; `None` if all watches of the type have been ended for good. Neither this nor the drop waits
    /// for a dispatch, unless more than [`WAITING_MAX`](crate::ring::registrations::WAITING_MAX) registrations are
    /// queued.
    ///
    /// The caller then checks that the type is ready, and only after that reads the window. The order matters: an event
    /// that was published before the attachment is found in the window, a later one is sent through the channel, and a
    /// feed that stopped before it is seen by the check.
    pub(crate) fn new(
        cache: &Arc<WatchCache>,
        filter: Filter,
        bookmarks: Option<Bookmarks>,
    ) -> Option<Self> {
        let (sender, receiver) = channel();
        let filter = Arc::new(filter);
        let watcher = NewWatcher {
            sender,
            filter: Arc::clone(&filter),
            bookmarks,
            came: cache.clock.now(),
        };
        let registered = cache.registrar.add(watcher).ok()?;
        let attachment = Self {
            cache: Arc::clone(cache),
            whole_scope: filter.is_scope(),
            filter,
            receiver,
            number: registered.number,
        };
        cache.metrics.engine.watchers.inc();
        if attachment.is_sharded() {
            cache.metrics.sharded_watches.inc();
        }
        if registered.crowded {
            cache.watchers().apply_registrations();
        }
        Some(attachment)
    }

    /// Returns true if the watcher selects a shard.
    fn is_sharded(&self) -> bool {
        let predicate = self.filter.predicate();
        predicate.is_some_and(|it| !it.shard.is_empty())
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.cache.metrics.engine.watchers.dec();
        if self.is_sharded() {
            self.cache.metrics.sharded_watches.dec();
        }
        if self.cache.registrar.remove(self.number) {
            self.cache.watchers().apply_registrations();
        }
    }
}
