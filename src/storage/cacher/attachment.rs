//! A watcher's hold on its type: it is told of events from its making to its drop.

use std::sync::Arc;

use super::bookmark::Bookmarks;
use super::filter::Filter;
use super::watch_cache::WatchCache;
use super::watchers::{NewWatcher, Receiver};
use crate::ring::channel::channel;

/// A watcher's part of what the dispatcher knows of it.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The cache of the watched type.
    pub(super) cache: Arc<WatchCache>,
    /// The watcher's selection.
    pub(super) filter: Arc<Filter>,
    /// True if the watcher selects everything in its scope.
    pub(super) whole_scope: bool,
    /// The channel of its events. Parked at first: the watcher begins with the window.
    pub(super) receiver: Receiver,
    /// Its number among those present.
    number: u32,
}

impl Attachment {
    /// Attaches a watcher; `None` if all watches have been ended for good. Neither this nor the drop
    /// waits for a dispatch, unless very many come and go at once.
    ///
    /// The caller then looks whether the type can be served, and only then reads the window: what
    /// has stopped by then, or was published by then, the watcher need not be told of.
    pub(super) fn new(
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
        if registered.crowded {
            cache.watchers().apply_registrations();
        }
        Some(attachment)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.cache.metrics.engine.watchers.dec();
        if self.cache.registrar.remove(self.number) {
            self.cache.watchers().apply_registrations();
        }
    }
}
