//! One stream of changes for all types.
//!
//! A [`Feed`] is where types are added and removed; the [`Reflector`] that comes with it does the
//! work. The two share what readers need of the feed: its revision, and a way to ask the store for
//! its own.
//!
//! # When the store falls back
//!
//! The feed's revision never falls, and everything that is cached is labelled with it. A store that
//! was restored from a backup falls behind what it has told of, so nothing of what is cached can be
//! kept, nor be compared with what comes. So each type gets a new, empty cache that belongs to a new
//! [`Freshness`], and the handles are turned to it. Readers take the cache once and with it the
//! clock that its revisions are of: the two histories never meet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::bookmark::BOOKMARK_TICK;
use super::cache_writer::CacheWriter;
use super::config::TypeConfig;
use super::freshness::Freshness;
use super::handle::Cacher;
use super::metrics::CacheMetrics;
use super::probe::RevisionProbe;
use super::reflector::Reflector;
use super::watch_cache::WatchCache;
use crate::budget::Ledger;
use crate::clock::{Clock, Instant};
use crate::ring::waiters::{Published, published};
use crate::storage::{ChangeSource, StorageError};
use crate::sync::{ArcSwap, Mutex, MutexGuard};

/// How long after one request for progress the next one goes out, while somebody waits.
const PROGRESS_REQUEST_PERIOD: Duration = Duration::from_millis(100);

/// How soon one request for progress may follow another.
const PROGRESS_REQUEST_SPACING: Duration = Duration::from_millis(5);

/// How many lists may be at the store because the cache is behind. All clients notice that at the same
/// time, and a list costs the store far more than it costs the cache: the others are told to retry.
const LAGGING_LISTS_MAX: usize = 8;

/// When those are to come back.
const LAGGING_RETRY_AFTER_SECONDS: u32 = 2;

/// Where types are added to the stream of changes.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The part that is shared with the reflector.
    shared: Arc<FeedShared>,
}

/// A type's number in a feed. It is not used again when the type is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TypeId(u64);

/// The part that the reflector, the feed and the types' caches share.
#[derive(Debug)]
pub(super) struct FeedShared {
    /// Where the changes come from.
    pub(super) source: Arc<dyn ChangeSource>,
    /// The source of time.
    pub(super) clock: Clock,
    /// The revision that all listed types have reached, in the present history of the store; stored
    /// under the lock of `caches`.
    fresh: ArcSwap<Freshness>,
    /// The probe that asks the store for its newest revision.
    probe: RevisionProbe,
    /// The turns of those who ask the store because the cache is behind.
    turns: Arc<Semaphore>,
    /// The families that every type's metrics are of.
    pub(super) metrics: CacheMetrics,
    /// Where the types' memory is written.
    pub(super) ledger: Ledger,
    /// The commands for the reflector.
    commands: Mutex<Commands>,
    /// Notified of each command.
    commands_pending: Notify,
    /// The caches of all types.
    caches: Mutex<Caches>,
}

/// The commands for the reflector. Bounded by the number of types.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// Types to list and follow.
    pub(super) added: Vec<(TypeId, CacheWriter)>,
    /// Types to list again.
    pub(super) relisted: BTreeSet<TypeId>,
    /// Types to forget.
    pub(super) removed: BTreeSet<TypeId>,
    /// The epoch of the history in which the store was found behind what it has told of.
    pub(super) store_rolled_back: Option<u64>,
}

/// All types of a feed.
#[derive(Debug, Default)]
struct Caches {
    /// Each type's cache, exchanged when the store begins a new history.
    by_id: BTreeMap<TypeId, Arc<ArcSwap<WatchCache>>>,
    /// The next type's number.
    next_id: u64,
    /// True if no watch may begin any more.
    draining: bool,
}

impl Feed {
    /// A feed of a store's changes, whose caches spend memory from `ledger`. Nothing happens until [`Reflector::run`] is polled.
    #[must_use]
    pub fn new(
        source: Arc<dyn ChangeSource>,
        clock: Clock,
        metrics: CacheMetrics,
        ledger: Ledger,
    ) -> (Self, Reflector) {
        let (publisher, published) = published(0);
        let fresh = Freshness::new(published, clock.clone());
        let shared = Arc::new(FeedShared {
            source,
            fresh: ArcSwap::from_pointee(fresh),
            clock,
            probe: RevisionProbe::default(),
            turns: Arc::new(Semaphore::new(LAGGING_LISTS_MAX)),
            metrics,
            ledger,
            commands: Mutex::default(),
            commands_pending: Notify::new(),
            caches: Mutex::default(),
        });
        let reflector = Reflector::new(Arc::clone(&shared), publisher);
        (Self { shared }, reflector)
    }

    /// Adds a type. It may be added while the feed runs; it is then listed while the others go on.
    #[must_use]
    pub fn add_type(&self, config: TypeConfig) -> Arc<Cacher> {
        let shared = &self.shared;
        let metrics = shared.metrics.of_type(&config.group, &config.resource);
        let clock = shared.clock.clone();
        // The lock is taken first, so that the cache is of the history that the lock guards.
        let mut caches = shared.caches();
        let (cache, window) = WatchCache::new(config, metrics, clock, shared.fresh());
        let cache = Arc::new(cache);
        let present = Arc::new(ArcSwap::new(Arc::clone(&cache)));
        let id = TypeId(caches.next_id);
        caches.next_id += 1;
        caches.by_id.insert(id, Arc::clone(&present));
        if caches.draining {
            cache.drain();
        }
        drop(caches);
        shared.command(|commands| {
            commands
                .added
                .push((id, CacheWriter::new(cache, window, &shared.ledger)))
        });
        Arc::new(Cacher::new(id, present, Arc::clone(shared)))
    }

    /// Removes a type: its watches end, what it keeps in memory goes, and its metrics are not shown
    /// any more. Its handle refuses everything from then on.
    pub fn remove_type(&self, cacher: &Cacher) {
        let shared = &self.shared;
        let id = cacher.id();
        let Some(present) = shared.caches().by_id.remove(&id) else {
            return;
        };
        let cache = present.load();
        shared
            .metrics
            .forget_type(&cache.config.group, &cache.config.resource);
        shared.command(|commands| {
            commands.removed.insert(id);
        });
    }

    /// Lists a type again while the others go on. Its watches end.
    pub fn relist(&self, cacher: &Cacher) {
        self.shared.command(|commands| {
            commands.relisted.insert(cacher.id());
        });
    }

    /// Has windows give back memory if they owe any. Who notices that memory is short calls it.
    pub fn shrink_windows(&self) {
        self.shared.command(|_| {});
    }

    /// Ends all watches of all types, each with a last bookmark if it wants bookmarks.
    pub fn drain(&self) {
        let mut caches = self.shared.caches();
        caches.draining = true;
        for cache in caches.by_id.values() {
            cache.load().drain();
        }
    }
}

impl FeedShared {
    /// Takes the commands that wait.
    pub(super) fn take_commands(&self) -> Commands {
        std::mem::take(&mut *self.lock_commands())
    }

    /// Completes when a command waits.
    pub(super) async fn commands_pending(&self) {
        self.commands_pending.notified().await;
    }

    fn command(&self, change: impl FnOnce(&mut Commands)) {
        change(&mut self.lock_commands());
        self.commands_pending.notify_one();
    }

    /// The feed's revision, in the present history of the store.
    pub(super) fn fresh(&self) -> Arc<Freshness> {
        self.fresh.load_full()
    }

    /// Begins a new history: every type that is still there gets a new cache. For the reflector,
    /// who then ends the old ones.
    pub(super) fn begin_anew(&self, published: Published) -> Vec<(TypeId, CacheWriter)> {
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

    /// The store's newest revision, as of some moment after the call, for a reader of a cache that
    /// belongs to `fresh`.
    ///
    /// # Errors
    /// The store's error; [`StorageError::Timeout`] at the deadline; [`StorageError::NotReady`] when the store is behind a
    /// revision that it has told. Then it was put back to an older state, the cached state would be taken for newer than it
    /// is, and everything is listed anew.
    pub(super) async fn newest_revision(
        &self,
        fresh: &Freshness,
        deadline: Instant,
    ) -> Result<u64, StorageError> {
        let told = fresh.revision();
        let newest = self.probe.revision(&self.clock, deadline).await?;
        if newest < told {
            tracing::error!(newest, told, "the store was restored from an older state");
            self.command(|commands| {
                commands.store_rolled_back = commands.store_rolled_back.max(Some(fresh.epoch()));
            });
            return Err(Freshness::store_rolled_back());
        }
        Ok(newest)
    }

    /// The right to ask the store because the cache is behind.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] when enough others do so.
    pub(super) fn turn_at_store(&self) -> Result<OwnedSemaphorePermit, StorageError> {
        let turn = Arc::clone(&self.turns).try_acquire_owned();
        turn.map_err(|_| StorageError::NotReady {
            reason: Some("the watch cache is behind the store".to_owned()),
            retry_after_seconds: LAGGING_RETRY_AFTER_SECONDS,
        })
    }

    /// Returns true if every event up to the feed's revision has come.
    pub(super) fn progress_is_trusted(&self) -> bool {
        self.source.progress_is_trusted()
    }

    /// Answers those who ask for the store's revision. Never completes.
    pub(super) async fn serve_probes(&self) {
        self.probe.serve(&*self.source, &self.clock).await;
    }

    /// Asks for progress at once when somebody begins to wait for a revision, and again for as long
    /// as somebody waits. Never completes.
    pub(super) async fn ask_for_progress(&self) {
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

    /// Sends bookmarks when they are due. Never completes.
    pub(super) async fn send_bookmarks(&self) {
        loop {
            self.clock.sleep(BOOKMARK_TICK).await;
            for present in self.caches().by_id.values() {
                let cache = present.load();
                if cache.readiness().is_ready() {
                    cache.send_due_bookmarks();
                }
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
