//! The single writer of a type's cache: applies changes, keeps the window, pushes to the watchers.
//!
//! There is one for each type and it is not shared: it keeps the newest state as a plain value, and
//! publishes the events that lead there batch by batch:
//!
//! ```text
//!  apply     decodes, looks up what each event replaces     no lock
//!  publish   lets readers see the events                    the watchers are locked from here
//!  dispatch  sends the events, unlocks, wakes the watchers
//! ```
//!
//! The steps are apart so that the revision of a batch is published once the windows of all its types are, however many
//! watchers these have. The lock is held over both, since a bookmark says that all that a reader can see was sent.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;

use crate::budget::{Account, Ledger, Share};
use crate::clock::Instant;
use crate::meta::Object;
use crate::storage::cacher::dispatch::index::WakeList;
use crate::storage::cacher::dispatch::watch_cache::WatchCache;
use crate::storage::cacher::dispatch::watchers::Watchers;
use crate::storage::cacher::metrics::engine_metrics::WindowFigures;
use crate::storage::cacher::readiness::ReadinessEvent;
use crate::storage::cacher::window::event::{CacheEvent, Current, KeptState};
use crate::storage::cacher::window::event_window::{STATE_EVENTS_MAX, WindowWriter};
use crate::storage::cacher::window::snapshot::{Entry, SnapshotMap};
use crate::storage::{Change, ChangeKind, StorageError};
use crate::sync::{MutexGuard, OnceLock};

/// The single writer of a type's cache.
#[derive(Debug)]
pub(crate) struct CacheWriter {
    cache: Arc<WatchCache>,
    /// The events, for readers.
    window: WindowWriter,
    /// The objects after the last event.
    state: SnapshotMap,
    /// The revision up to which every change of the type has been applied.
    revision: u64,
    /// The state's share of the memory budget.
    objects: Share,
    /// The window's share of the memory budget.
    history: Share,
    /// The number of times that the cache has become complete, by a list or by changes that had to wait.
    generation: u64,
}

/// The events of a type that its writer has applied to its own state and nobody has seen.
#[derive(Debug)]
#[must_use = "the events must be published"]
pub(crate) struct AppliedEvents {
    events: Vec<Arc<CacheEvent>>,
    /// The instant at which the events were received.
    received: Instant,
}

/// The events of a type that readers see and watchers have not been sent.
#[must_use = "the events must be dispatched"]
pub(crate) struct UndispatchedEvents<'a> {
    cache: &'a WatchCache,
    /// Locked since before the events were published.
    watchers: MutexGuard<'a, Watchers>,
    /// The sequence number of the first event.
    first: u64,
    applied: AppliedEvents,
    /// The instant at which the events were published.
    published: Instant,
}

/// The content of a type while it is listed page by page, before it replaces the served state.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    state: SnapshotMap,
    /// The number of objects listed so far.
    objects: u64,
    /// Their share of the memory budget, which is counted beside that of the state still being served.
    share: Option<Share>,
}

impl CacheWriter {
    /// Creates the writer of a cache that has not been filled.
    pub(crate) fn new(cache: Arc<WatchCache>, window: WindowWriter, ledger: &Ledger) -> Self {
        Self {
            cache,
            window,
            state: SnapshotMap::default(),
            revision: 0,
            objects: ledger.share(Account::Objects),
            history: ledger.share(Account::Windows),
            generation: 0,
        }
    }

    /// Returns the prefix of the type's keys in the store.
    pub(crate) fn prefix(&self) -> &str {
        &self.cache.config.prefix
    }

    /// Returns true if there is a value that is no object.
    pub(crate) fn has_unreadable(&self) -> bool {
        self.state.has_unreadable()
    }

    /// Returns an empty filling, for a list of the type.
    pub(crate) fn begin_filling(&self) -> Filling {
        let config = &self.cache.config;
        let state = SnapshotMap::with_indexes(config.versioner.schema());
        Filling {
            state: state.and_shards(config.shard_indexes),
            share: Some(self.share()),
            objects: 0,
        }
    }

    /// Returns a share of the memory budget for what is to become a part of the state.
    pub(crate) fn share(&self) -> Share {
        self.objects.another()
    }

    /// Returns the part that is shared with readers.
    pub(crate) fn shared(&self) -> &Arc<WatchCache> {
        &self.cache
    }

    /// Replaces the state by what was listed at `revision`. Watches of the earlier state end.
    pub(crate) fn replace(&mut self, revision: u64, filling: Filling) {
        self.cache.note(ReadinessEvent::Listed { revision });
        let mut wake = WakeList::new();
        self.generation += 1;
        self.revision = revision;
        self.state = filling.state;
        drop(filling.share);
        self.objects.set(self.state.bytes());
        let mut watchers = self.cache.watchers();
        let before = self.window.reset(revision, self.state.clone());
        // A watcher that registers after this begins with the new state.
        watchers.end_all(&mut wake);
        drop(watchers);
        // The old events are dropped outside the lock.
        drop(before);
        wake.into_iter().for_each(Waker::wake);
        self.show_window(self.cache.clock.now());
        self.cache.metrics.initializations.inc();
        self.cache.metrics.set_resource_version(revision);
    }

    /// Begins to serve what the last [`CacheWriter::replace`] and the changes since have brought.
    pub(crate) fn serve(&self) {
        let generation = self.generation;
        self.cache.note(ReadinessEvent::Current { generation });
    }

    /// Stops serving because the history has a gap from here on: all watches end.
    pub(crate) fn invalidate(&self, reason: &StorageError) {
        let reason = reason.to_string();
        self.cache.note(ReadinessEvent::HistoryLost { reason });
        self.end_watches();
    }

    /// Stops serving while changes wait to be applied. Watches stay, and receive them once [`CacheWriter::resume`] has
    /// applied them.
    pub(crate) fn suspend(&self, reason: String) {
        let revision = self.revision;
        self.cache
            .note(ReadinessEvent::Suspended { revision, reason });
    }

    /// Applies the changes that have waited, as [`CacheWriter::apply`] does. [`CacheWriter::serve`] begins to serve
    /// again.
    pub(crate) fn resume(&mut self, changes: Vec<Change>, revision: u64) -> Option<AppliedEvents> {
        // A reader that took its view meanwhile must not take it for one of a type that was served all the time.
        self.generation += 1;
        self.apply(changes, revision)
    }

    /// Records in the readiness why the type could not be listed.
    pub(crate) fn note_failure(&self, reason: &StorageError) {
        self.cache.metrics.initialization_errors.inc();
        let reason = reason.to_string();
        self.cache.note(ReadinessEvent::Failed { reason });
    }

    /// Stops serving for good.
    pub(crate) fn stop(&self) {
        self.cache.note(ReadinessEvent::Stop);
        self.end_watches();
    }

    fn end_watches(&self) {
        let mut wake = WakeList::new();
        self.cache.watchers().end_all(&mut wake);
        wake.into_iter().for_each(Waker::wake);
    }

    /// Applies the type's changes of a batch, the last of which has `revision`. Changes that the cache has already
    /// applied are skipped. Returns `None` if a change contradicts the known state: then an earlier one was lost,
    /// nothing of the batch may be published, and the type must be listed again.
    pub(crate) fn apply(&mut self, changes: Vec<Change>, revision: u64) -> Option<AppliedEvents> {
        let reached = self.revision;
        let received = self.cache.clock.now();
        let mut events = Vec::new();
        let new = changes.into_iter().filter(|it| it.revision > reached);
        let mut new = new.peekable();
        while let Some(change) = new.next() {
            self.cache.metrics.events_received.inc();
            let mut event = self.event(change, received)?;
            if (events.len() + 1).is_multiple_of(STATE_EVENTS_MAX) || new.peek().is_none() {
                event.state = KeptState::new(self.state.clone());
            }
            events.push(Arc::new(event));
        }
        self.objects.set(self.state.bytes());
        self.revision = reached.max(revision);
        Some(AppliedEvents { events, received })
    }

    /// Drops the events that are too many, too large together or too old for the limits of the window. Those of a quiet
    /// type become too old without any change.
    pub(crate) fn expire_events(&mut self) {
        let now = self.cache.clock.now();
        self.window.evict(now);
        self.show_window(now);
    }

    /// Publishes events, so that readers see them.
    pub(crate) fn publish(&mut self, applied: AppliedEvents) -> UndispatchedEvents<'_> {
        let first = self.window.end();
        for event in &applied.events {
            self.window.append(Arc::clone(event));
        }
        let watchers = self.cache.watchers();
        self.window.publish();
        self.cache.metrics.set_resource_version(self.revision);
        UndispatchedEvents {
            cache: &self.cache,
            watchers,
            first,
            applied,
            published: self.cache.clock.now(),
        }
    }

    /// Returns how many bytes the window has if some can be freed for the memory budget; otherwise 0.
    pub(crate) fn spare_bytes(&self, now: Instant) -> usize {
        if self.window.can_shrink(now) {
            self.window.bytes()
        } else {
            0
        }
    }

    /// Drops the oldest segment of the window, although the limits would keep it.
    pub(crate) fn shrink_window(&mut self, now: Instant) {
        self.window.shrink(now);
        self.show_window(now);
    }

    /// Updates the metrics and the budget share of the window.
    fn show_window(&mut self, now: Instant) {
        self.history.set(self.window.bytes() as u64);
        let oldest = self.window.oldest();
        let age = oldest.map(|it| now.saturating_duration_since(it));
        self.cache.metrics.engine.set_window(WindowFigures {
            events: self.window.len(),
            bytes: self.window.bytes(),
            age_seconds: age.unwrap_or_default().as_secs(),
            events_min: self.cache.config.window.events_min,
        });
    }

    /// Applies a change to the writer's own state and returns its event, without a state of its own. Returns `None` if
    /// the change cannot follow the known state: only an existing key is deleted, and only a missing one is created.
    fn event(&mut self, change: Change, now: Instant) -> Option<CacheEvent> {
        let found = self.state.get_key_value(&change.key);
        let possible = match change.kind {
            ChangeKind::Delete => found.is_some(),
            ChangeKind::Put { created, .. } | ChangeKind::Encrypted { created, .. } => {
                !(created && found.is_some())
            }
        };
        if !possible {
            return None;
        }
        let previous = found.and_then(|(_, entry)| entry.object()).cloned();
        // The state, its indexes and the events share one copy of a key.
        let key = found.map(|(key, _)| Arc::clone(key));
        let key = key.unwrap_or_else(|| change.key.into());
        let current = match change.kind {
            ChangeKind::Delete => Current::Deleted,
            // Encrypted values have been decrypted before; one that has not been is no object.
            ChangeKind::Put { value, .. } | ChangeKind::Encrypted { value, .. } => {
                let decoded = decode(&self.cache, &key, value, change.revision);
                decoded.map_or(Current::Unreadable, Current::Object)
            }
        };
        let event = CacheEvent {
            key,
            revision: change.revision,
            current,
            previous,
            state: KeptState::default(),
            received: now,
            removed: OnceLock::new(),
        };
        event.apply(&mut self.state);
        Some(event)
    }
}

impl UndispatchedEvents<'_> {
    /// Sends the events to the watchers, then outside the lock wakes them.
    pub(crate) fn dispatch(mut self) {
        let AppliedEvents { events, received } = self.applied;
        let mut wake = WakeList::new();
        let dispatched = self.watchers.dispatch(self.first, &events, &mut wake);
        self.cache.note_sent(self.first + events.len() as u64);
        drop(self.watchers);
        wake.into_iter().for_each(Waker::wake);
        let metrics = &self.cache.metrics;
        metrics.engine.overflows.inc_by(dispatched.overflows);
        let refused = dispatched.refused_by_shards;
        metrics.refused_by_shards.inc_by(refused);
        metrics.events_dispatched.inc_by(events.len() as u64);
        if !events.is_empty() {
            let notified = self.cache.clock.now();
            metrics.dispatch.observe(received, self.published, notified);
        }
    }
}

impl Filling {
    /// Stores what was listed under a key.
    pub(crate) fn put(&mut self, key: Arc<str>, entry: Entry) {
        let before = self.state.insert(key, entry);
        self.objects += u64::from(before.is_none());
    }

    /// Removes all objects, before the list begins again.
    pub(crate) fn clear(&mut self) {
        self.state.clear();
        self.objects = 0;
    }

    /// Reports in the readiness of the type how many objects have been listed.
    pub(crate) fn note(&mut self, cache: &WatchCache) {
        if let Some(share) = &mut self.share {
            share.set(self.state.bytes());
        }
        let objects = self.objects;
        cache.note(ReadinessEvent::Page { objects });
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&mut self, key: &str) {
        let before = self.state.remove(key);
        self.objects -= u64::from(before.is_some());
    }

    /// Returns the revision of the object under a key; `None` if there is none or it could not be decoded.
    pub(crate) fn revision_of(&self, key: &str) -> Option<u64> {
        match self.state.get(key) {
            Some(Entry::Readable(object)) => Some(object.revision()),
            Some(Entry::Unreadable { .. }) | None => None,
        }
    }
}

/// Decodes a listed value into an entry.
pub(crate) fn read_entry(cache: &WatchCache, key: &str, value: Bytes, revision: u64) -> Entry {
    match decode(cache, key, value, revision) {
        Some(object) => Entry::Readable(object),
        None => Entry::Unreadable { last: None },
    }
}

/// Decodes a stored value; `None` if it is not an object, which is logged and counted and does not stop its type.
fn decode(cache: &WatchCache, key: &str, value: Bytes, revision: u64) -> Option<Arc<Object>> {
    match cache.config.versioner.update_object(value, revision) {
        Ok(object) => Some(Arc::new(object)),
        Err(error) => {
            cache.metrics.decode_errors.inc();
            tracing::error!(key, revision, %error, "a stored value is not an object");
            None
        }
    }
}
