//! The part that a feed, its reflector and the handles of its types share: the store, the revision that all types have
//! reached, the caches and the commands for the reflector.
//!
//! # When the store was rolled back
//!
//! The feed's revision never falls, and everything that is cached is labelled with it. A store that was restored from a
//! backup has a newest revision below the one that it last reported, so nothing that is cached may be kept, or compared
//! with what follows. So each type gets a new, empty cache with a new [`Freshness`], and the handles are switched to
//! it. A reader takes the cache once, and with it the [`Freshness`] that its revisions belong to: the two histories are
//! never mixed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::cache_writer::CacheWriter;
use super::ready_changes::follow_merged;
use crate::budget::Ledger;
use crate::clock::{Clock, Instant};
use crate::ring::waiters::PublishedNumber;
use crate::storage::cacher::config::TypeConfig;
use crate::storage::cacher::dispatch::bookmark::BOOKMARK_TICK;
use crate::storage::cacher::dispatch::watch_cache::WatchCache;
use crate::storage::cacher::freshness::feed_revision::Freshness;
use crate::storage::cacher::freshness::revision_probe::RevisionProbe;
use crate::storage::cacher::metrics::cache_metrics::CacheMetrics;
use crate::storage::{ChangeSource, ChangeStream, StorageError};
use crate::sync::{ArcSwap, Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore};

/// The interval between two requests for progress, while a reader waits for a revision.
const PROGRESS_REQUEST_PERIOD: Duration = Duration::from_millis(100);

/// Minimum time between two requests for progress.
const PROGRESS_REQUEST_SPACING: Duration = Duration::from_millis(5);

/// Maximum number of lists that are sent to the store at a time because the cache lags. All clients notice that at the
/// same time, and a list costs the store far more than it costs the cache: the others receive an error that asks them
/// to retry.
const LAGGING_LISTS_MAX: usize = 8;

/// The retry delay of the others, in seconds.
const LAGGING_RETRY_AFTER_SECONDS: u32 = 2;

/// A type's number in a feed. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeId(u64);

/// The part that the reflector, the feed and the types' caches share.
#[derive(Debug)]
pub(crate) struct FeedShared {
    /// The store whose changes are followed.
    pub(crate) source: Arc<dyn ChangeSource>,
    /// The source of time.
    pub(crate) clock: Clock,
    /// The revision that all listed types have reached in the current history of the store; replaced under the lock of
    /// `caches`.
    fresh: ArcSwap<Freshness>,
    /// The probe of the store's newest revision.
    probe: RevisionProbe,
    /// The permits to read from the store because the cache lags.
    lagging_lists: Arc<Semaphore>,
    /// The metric families of all types.
    pub(crate) metrics: CacheMetrics,
    /// The ledger of the memory budget.
    pub(crate) ledger: Ledger,
    /// The commands for the reflector.
    commands: Mutex<Commands>,
    /// Notified of each command.
    commands_pending: Notify,
    /// The caches of all types.
    caches: Mutex<Caches>,
}

/// The commands for the reflector, at most one of each kind for each type.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// Types to list and follow.
    pub(crate) added: Vec<(TypeId, CacheWriter)>,
    /// Types to list again.
    pub(crate) relisted: BTreeSet<TypeId>,
    /// True if the types that have unreadable values are to be listed again.
    pub(crate) relist_unreadable: bool,
    /// Types to forget.
    pub(crate) removed: BTreeSet<TypeId>,
    /// The epoch of the history in which the store was found behind a revision that it had reported.
    pub(crate) store_rolled_back: Option<u64>,
}

/// The caches of all types of a feed.
#[derive(Debug, Default)]
struct Caches {
    /// The cache of each type; replaced when the store begins a new history.
    by_id: BTreeMap<TypeId, Arc<ArcSwap<WatchCache>>>,
    /// The next type's number.
    next_id: u64,
    /// True once all watches have been ended for good; no new watch may begin.
    draining: bool,
}

impl FeedShared {
    /// Creates the part that a feed and its reflector share, whose types have reached nothing yet.
    pub(crate) fn new(
        source: Arc<dyn ChangeSource>,
        clock: Clock,
        metrics: CacheMetrics,
        ledger: Ledger,
        published: PublishedNumber,
    ) -> Self {
        let fresh = Freshness::new(published, clock.clone());
        Self {
            source,
            fresh: ArcSwap::from_pointee(fresh),
            clock,
            probe: RevisionProbe::default(),
            lagging_lists: Arc::new(Semaphore::new(LAGGING_LISTS_MAX)),
            metrics,
            ledger,
            commands: Mutex::default(),
            commands_pending: Notify::new(),
            caches: Mutex::default(),
        }
    }

    /// Adds a type, which the reflector lists while the others are followed. Returns its number, and its cache.
    pub(crate) fn add_type(&self, config: TypeConfig) -> (TypeId, Arc<ArcSwap<WatchCache>>) {
        let metrics = self.metrics.of_type(&config.group, &config.resource);
        let clock = self.clock.clone();
        // The lock is taken first, so that the cache belongs to the history that the lock guards.
        let mut caches = self.caches();
        let (cache, window) = WatchCache::new(config, metrics, clock, self.fresh());
        let cache = Arc::new(cache);
        let present = Arc::new(ArcSwap::new(Arc::clone(&cache)));
        let id = TypeId(caches.next_id);
        caches.next_id += 1;
        caches.by_id.insert(id, Arc::clone(&present));
        if caches.draining {
            cache.drain();
        }
        drop(caches);
        let writer = CacheWriter::new(cache, window, &self.ledger);
        self.command(|commands| commands.added.push((id, writer)));
        (id, present)
    }

    /// Removes a type, whose watches the reflector then ends.
    pub(crate) fn remove_type(&self, id: TypeId) {
        let Some(present) = self.caches().by_id.remove(&id) else {
            return;
        };
        let cache = present.load();
        self.metrics.forget_type(&cache.config);
        self.command(|commands| {
            commands.removed.insert(id);
        });
    }

    /// Returns the present cache of each type.
    pub(crate) fn present(&self) -> Vec<Arc<WatchCache>> {
        let caches = self.caches();
        caches.by_id.values().map(|it| it.load_full()).collect()
    }

    /// Ends all watches of all types for good.
    pub(crate) fn drain(&self) {
        let mut caches = self.caches();
        caches.draining = true;
        for cache in caches.by_id.values() {
            cache.load().drain();
        }
    }

    /// Takes the commands that are pending.
    pub(crate) fn take_commands(&self) -> Commands {
        std::mem::take(&mut *self.lock_commands())
    }

    /// Completes when a command is pending.
    pub(crate) async fn commands_pending(&self) {
        self.commands_pending.notified().await;
    }

    /// Changes the commands for the reflector, and wakes it.
    pub(crate) fn command(&self, change: impl FnOnce(&mut Commands)) {
        change(&mut self.lock_commands());
        self.commands_pending.notify_one();
    }

    /// Returns the feed's revision in the current history of the store.
    pub(crate) fn fresh(&self) -> Arc<Freshness> {
        self.fresh.load_full()
    }

    /// Begins a new history: every type that has not been removed gets a new cache. Returns their writers for the
    /// reflector, which then ends the watches of the old caches.
    pub(crate) fn begin_anew(&self, published: PublishedNumber) -> Vec<(TypeId, CacheWriter)> {
        let caches = self.caches();
        let fresh = Arc::new(self.fresh().successor(published));
        self.fresh.store(Arc::clone(&fresh));
        let mut writers = Vec::with_capacity(caches.by_id.len());
        for (id, present) in &caches.by_id {
            let (cache, window) = present.load().successor(Arc::clone(&fresh));
            let cache = Arc::new(cache);
            if caches.draining {
                cache.drain();
            }
            present.store(Arc::clone(&cache));
            writers.push((*id, CacheWriter::new(cache, window, &self.ledger)));
        }
        writers
    }

    /// Returns the store's newest revision as of some moment after the call, for a reader of a cache that belongs to
    /// `fresh`.
    ///
    /// # Errors
    /// The store's error; [`StorageError::Timeout`] at the deadline; [`StorageError::NotReady`] when the newest
    /// revision is below one that the store reported before. Then the store was restored from a backup, the cached
    /// state would be taken for newer than it is, and everything is listed again. Nothing of that history is served
    /// from then on.
    pub(crate) async fn newest_revision(
        &self,
        fresh: &Freshness,
        deadline: Instant,
    ) -> Result<u64, StorageError> {
        let reported = fresh.revision();
        let newest = self.probe.revision(&self.clock, deadline).await?;
        if newest < reported {
            tracing::error!(
                newest,
                reported,
                "the store was restored from an older state"
            );
            let error = fresh.leave_behind();
            self.command(|commands| {
                commands.store_rolled_back = commands.store_rolled_back.max(Some(fresh.epoch()));
            });
            return Err(error);
        }
        Ok(newest)
    }

    /// Returns a permit to read from the store because the cache lags.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] when [`LAGGING_LISTS_MAX`] readers hold one.
    pub(crate) fn permit_lagging_list(&self) -> Result<OwnedSemaphorePermit, StorageError> {
        let permit = Arc::clone(&self.lagging_lists).try_acquire_owned();
        permit.map_err(|_| StorageError::NotReady {
            reason: Some("the watch cache is behind the store".to_owned()),
            retry_after_seconds: LAGGING_RETRY_AFTER_SECONDS,
        })
    }

    /// Returns true if progress notices never overtake events, so that every event up to the feed's revision has come.
    pub(crate) fn progress_is_trusted(&self) -> bool {
        self.source.progress_is_trusted()
    }

    /// Returns true if a cache that waits for the store's newest revision comes to it soon.
    pub(crate) fn reaches_newest(&self) -> bool {
        self.source.reaches_newest()
    }

    /// Runs the probe of the store's newest revision. Never completes.
    pub(crate) async fn serve_probes(&self) {
        self.probe.serve(&*self.source, &self.clock).await;
    }

    /// Requests progress at once when a reader begins to wait for a revision, and again for as long as one waits. Never
    /// completes.
    pub(crate) async fn request_progress(&self) {
        loop {
            let fresh = self.fresh();
            let again = fresh.is_awaited();
            tokio::select! {
                () = fresh.wanted() => {}
                () = self.clock.sleep(PROGRESS_REQUEST_PERIOD), if again => {}
            }
            if !self.fresh().is_awaited() || !self.progress_is_trusted() {
                continue;
            }
            if let Err(error) = self.source.request_progress().await {
                tracing::debug!(%error, "the store does not accept requests for progress");
            }
            self.clock.sleep(PROGRESS_REQUEST_SPACING).await;
        }
    }

    /// Opens the stream of changes after a revision.
    pub(crate) async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let stream = follow_merged(&*self.source, revision).await?;
        // The store may fall silent at any time from here on.
        self.metrics
            .set_asks_for_progress(self.progress_is_trusted());
        Ok(stream)
    }

    /// Requests progress, so that the metric of the last report tells a store that is silent from one without changes.
    pub(crate) async fn ask_if_the_store_reports(&self) {
        let asks = self.progress_is_trusted();
        self.metrics.set_asks_for_progress(asks);
        if !asks {
            return;
        }
        if let Err(error) = self.source.request_progress().await {
            tracing::debug!(%error, "the store does not accept requests for progress");
        }
    }

    /// Sends bookmarks when they are due. Never completes.
    pub(crate) async fn send_bookmarks(&self) {
        loop {
            self.clock.sleep(BOOKMARK_TICK).await;
            for present in self.caches().by_id.values() {
                present.load().send_due_bookmarks();
            }
        }
    }

    fn lock_commands(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caches(&self) -> MutexGuard<'_, Caches> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
