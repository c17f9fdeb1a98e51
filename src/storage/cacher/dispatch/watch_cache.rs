//! The state of a type's cache, which its writer and its readers share.
//!
//! ```text
//!  Reflector --> CacheWriter (one writer) --publishes--> CacheView --> lists, gets, watch starts
//!                     |                                   ^
//!                     +--pushes-> Watchers --channel--> CacheWatcher reads the window
//! ```

use std::sync::{Arc, PoisonError};
use std::task::Waker;

use super::index::WakeList;
use super::watchers::{NewWatcher, Watchers};
use crate::clock::Clock;
use crate::ring::registrations::{Registrar, registrations};
use crate::storage::StorageError;
use crate::storage::cacher::config::TypeConfig;
use crate::storage::cacher::freshness::feed_revision::Freshness;
use crate::storage::cacher::freshness::waiting_reads::WaitingReads;
use crate::storage::cacher::metrics::cache_metrics::TypeMetrics;
use crate::storage::cacher::metrics::engine_metrics::WindowFigures;
use crate::storage::cacher::readiness::{self, Readiness};
use crate::storage::cacher::window::event_window::{Window, WindowWriter, window};
use crate::storage::cacher::window::view::CacheView;
use crate::sync::{AtomicU64, Mutex, MutexGuard, OnceLock, Ordering, watch};

/// The retry delay of a reader during whose read the type was listed again, in seconds.
const RELISTED_RETRY_AFTER_SECONDS: u32 = 1;

/// The state of a type's cache: its window of events, its watchers and its readiness.
#[derive(Debug)]
pub(crate) struct WatchCache {
    /// The configuration of the type.
    pub(crate) config: TypeConfig,
    /// The metrics of the type.
    pub(crate) metrics: TypeMetrics,
    /// The source of time.
    pub(crate) clock: Clock,
    /// The feed's revision in this history of the store, and the readers that wait for it.
    pub(crate) fresh: Arc<Freshness>,
    /// The reads that wait for the type to become fresh enough.
    pub(crate) waiting: WaitingReads,
    /// The newest events and the state after each.
    window: Window,
    /// The queue in which watchers are added and removed.
    pub(crate) registrar: Registrar<NewWatcher>,
    /// The watchers, to which events are dispatched.
    watchers: Mutex<Watchers>,
    /// The number below which every event has been sent to the watchers that it concerns.
    sent: AtomicU64,
    /// The readiness of the type.
    readiness: watch::Sender<Readiness>,
    /// Set when the type becomes ready for the first time, in whichever history of the store.
    served_once: Arc<OnceLock<()>>,
}

impl WatchCache {
    /// Creates a cache that has not been filled, and the writer of its window.
    pub(crate) fn new(
        config: TypeConfig,
        metrics: TypeMetrics,
        clock: Clock,
        fresh: Arc<Freshness>,
    ) -> (Self, WindowWriter) {
        let now = clock.now();
        let (writer, window) = window(config.window);
        let (registrar, registrations) = registrations();
        metrics.engine.set_window(WindowFigures {
            events_min: config.window.events_min,
            ..WindowFigures::default()
        });
        let cache = Self {
            config,
            metrics,
            clock,
            fresh,
            waiting: WaitingReads::default(),
            window,
            registrar,
            watchers: Mutex::new(Watchers::new(registrations, now)),
            sent: AtomicU64::new(0),
            readiness: watch::Sender::new(Readiness::begin(now)),
            served_once: Arc::default(),
        };
        (cache, writer)
    }

    /// Creates the cache that replaces this one when the store begins a new history, and the writer of its window.
    pub(crate) fn successor(&self, fresh: Arc<Freshness>) -> (Self, WindowWriter) {
        let (config, metrics) = (self.config.clone(), self.metrics.clone());
        let (mut cache, writer) = Self::new(config, metrics, self.clock.clone(), fresh);
        cache.served_once = Arc::clone(&self.served_once);
        (cache, writer)
    }

    /// Returns a view of the newest state and the window of events.
    pub(crate) fn view(&self) -> CacheView {
        self.window.view()
    }

    /// Returns the newest view, and the revision that it is known to have reached.
    pub(crate) fn current(&self) -> (CacheView, u64) {
        // The feed publishes its revision after the types' windows, so the view is taken second. A type that was listed
        // alone, or whose events have just been published, is ahead of the feed.
        let reached = self.fresh.revision();
        let view = self.view();
        let revision = reached.max(view.revision());
        (view, revision)
    }

    /// Returns the same as [`WatchCache::current`], if the type is ready.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] with the reason and a retry delay.
    pub(crate) fn served(&self) -> Result<(CacheView, u64), StorageError> {
        // A type that must be listed again is marked so before the feed's revision rises without it. So if it was ready
        // before the view was taken and is so after it, from the same list, it held every change up to the feed's
        // revision.
        let before = self.readiness();
        let current = self.current();
        let after = self.readiness();
        after.check(self.clock.now())?;
        self.fresh.check()?;
        if after == before {
            Ok(current)
        } else {
            Err(StorageError::NotReady {
                reason: Some("the type has just been listed again".to_owned()),
                retry_after_seconds: RELISTED_RETRY_AFTER_SECONDS,
            })
        }
    }

    /// Notes that every event below a number has been sent to the watchers that it concerns.
    pub(crate) fn note_sent(&self, end: u64) {
        // Release: pairs with the Acquire in `sent`.
        self.sent.store(end, Ordering::Release);
    }

    /// Returns the number below which every event has been sent to the watchers that it concerns. Whoever then finds
    /// the channel of one of them empty knows that it has taken all of these.
    pub(crate) fn sent(&self) -> u64 {
        // Acquire: pairs with the Release in `note_sent`, so that what was pushed before that is seen.
        self.sent.load(Ordering::Acquire)
    }

    /// Returns the registry of watchers, locked.
    pub(crate) fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current readiness.
    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness.borrow().clone()
    }

    /// Returns a receiver of the changes of the readiness.
    pub(crate) fn follow_readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.subscribe()
    }

    /// Applies an event to the state machine of the readiness.
    pub(crate) fn note(&self, event: readiness::ReadinessEvent) {
        let now = self.clock.now();
        self.readiness.send_modify(|it| {
            let after = it.after(event, now);
            if let (Readiness::Pending { since, .. }, true) = (&*it, after.is_ready()) {
                let took = now.saturating_duration_since(*since);
                let seconds = &self.metrics.initialization_seconds;
                seconds.observe(took.as_secs_f64());
            }
            if it.is_ready() != after.is_ready() {
                let (group, resource) = (&self.config.group, &self.config.resource);
                tracing::info!(group, resource, from = ?it, to = ?after, "readiness changed");
            }
            if after.is_ready() {
                // Only the first time counts.
                let _ = self.served_once.set(());
            }
            *it = after;
        });
    }

    /// Returns true if the type is ready, or was at some time.
    pub(crate) fn has_been_ready(&self) -> bool {
        self.served_once.get().is_some()
    }

    /// Checks that the type is ready, and that the store is still in the same history.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] with the reason and a retry delay.
    pub(crate) fn check_ready(&self) -> Result<(), StorageError> {
        self.readiness.borrow().check(self.clock.now())?;
        self.fresh.check()
    }

    /// Sends the bookmarks that are due, if the type is ready. The registry is locked, so every event up to the
    /// revision of the view has been sent.
    pub(crate) fn send_due_bookmarks(&self) {
        let mut wake = WakeList::new();
        let mut watchers = self.watchers();
        let Ok((_, revision)) = self.served() else {
            return;
        };
        watchers.send_due_bookmarks(self.clock.now(), revision, &mut wake);
        drop(watchers);
        wake.into_iter().for_each(Waker::wake);
    }

    /// Ends all watches for good. Those that want bookmarks get a last one if the cache is ready.
    pub(crate) fn drain(&self) {
        let mut wake = WakeList::new();
        let mut watchers = self.watchers();
        let bookmark = self.served().ok().map(|(_, revision)| revision);
        watchers.drain(bookmark, &mut wake);
        drop(watchers);
        wake.into_iter().for_each(Waker::wake);
    }
}
