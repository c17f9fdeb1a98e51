//! The registration of a watcher with the dispatcher of its type: events are sent to it from its creation to its drop,
//! but for the time for which it follows another watcher.

use std::sync::Arc;

use super::bookmark::{BOOKMARK_PERIOD, BOOKMARK_TICK, Bookmarks};
use super::filter::Filter;
use super::signal_channel::Receiver;
use super::watch_cache::WatchCache;
use super::watchers::NewWatcher;
use crate::clock::Instant;
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
    /// The bookmarks that the watcher wants, if any.
    pub(crate) bookmarks: Option<Bookmarks>,
    /// The channel of its events, and its number in the registration queue; `None` while the watcher follows another
    /// one.
    registration: Option<WatcherRegistration>,
    /// True if the watcher counts in the metrics, as all do but one that others follow.
    counts: bool,
}

/// The registration of a watcher.
#[derive(Debug)]
struct WatcherRegistration {
    /// The channel of its events. It begins overflowed, so that the watcher first reads the window.
    receiver: Receiver,
    /// The watcher's number in the registration queue; reused after its removal.
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
        let mut attachment = Self {
            cache: Arc::clone(cache),
            whole_scope: filter.is_scope(),
            filter: Arc::new(filter),
            bookmarks,
            registration: None,
            counts: false,
        };
        if !attachment.attach(cache.clock.now()) {
            return None;
        }
        attachment.counts = true;
        cache.metrics.engine.watchers.inc();
        if attachment.is_sharded() {
            cache.metrics.sharded_watches.inc();
        }
        Some(attachment)
    }

    /// Attaches one more watcher with the selection of this one, as [`Attachment::new`] does, which has no deadline and
    /// is not counted in the metrics.
    pub(crate) fn of_leader(&self) -> Option<Self> {
        let mut attachment = Self {
            cache: Arc::clone(&self.cache),
            filter: Arc::clone(&self.filter),
            whole_scope: self.whole_scope,
            bookmarks: self.bookmarks.map(|_| Bookmarks { deadline: None }),
            registration: None,
            counts: false,
        };
        attachment.attach_again().then_some(attachment)
    }

    /// Returns true if the watcher counts in the metrics.
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// Returns the channel of the watcher's events; `None` while it is detached.
    pub(crate) fn receiver(&self) -> Option<&Receiver> {
        self.registration.as_ref().map(|it| &it.receiver)
    }

    /// Returns the channel of the watcher's events as [`Attachment::receiver`], to take signals.
    pub(crate) fn receiver_mut(&mut self) -> Option<&mut Receiver> {
        self.registration.as_mut().map(|it| &mut it.receiver)
    }

    /// Has no more events sent to the watcher.
    pub(crate) fn detach(&mut self) {
        if let Some(registration) = self.registration.take()
            && self.cache.registrar.remove(registration.number)
        {
            self.cache.watchers().apply_registrations();
        }
    }

    /// Has events sent to the watcher through a new channel. Returns false if all watches of the type have been ended
    /// for good. What the caller does then is said at [`Attachment::new`].
    ///
    /// Its next bookmark is due soon, since the last one may have come nearly a period ago.
    pub(crate) fn attach_again(&mut self) -> bool {
        let now = self.cache.clock.now();
        let came = now.checked_sub(BOOKMARK_PERIOD.saturating_sub(BOOKMARK_TICK));
        self.attach(came.unwrap_or(now))
    }

    /// Has events sent to the watcher, as if it had come at some time. Returns false as [`Attachment::attach_again`].
    fn attach(&mut self, came: Instant) -> bool {
        let (sender, receiver) = channel();
        let watcher = NewWatcher {
            sender,
            filter: Arc::clone(&self.filter),
            bookmarks: self.bookmarks,
            came,
        };
        let Ok(registered) = self.cache.registrar.add(watcher) else {
            return false;
        };
        self.registration = Some(WatcherRegistration {
            receiver,
            number: registered.number,
        });
        if registered.crowded {
            self.cache.watchers().apply_registrations();
        }
        true
    }

    /// Returns true if the watcher selects a shard.
    fn is_sharded(&self) -> bool {
        let predicate = self.filter.predicate();
        predicate.is_some_and(|it| !it.shard.is_empty())
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.detach();
        if !self.counts {
            return;
        }
        self.cache.metrics.engine.watchers.dec();
        if self.is_sharded() {
            self.cache.metrics.sharded_watches.dec();
        }
    }
}
