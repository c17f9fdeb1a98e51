//! One stream of changes for all types.
//!
//! A [`Feed`] is where types are added; the [`Reflector`] that comes with it does the work. The two
//! share what readers need of the feed: its revision, and a way to ask the store for its own.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::bookmark::BOOKMARK_TICK;
use super::config::TypeConfig;
use super::freshness::Freshness;
use super::handle::Cacher;
use super::metrics::CacheMetrics;
use super::probe::RevisionProbe;
use super::reflector::Reflector;
use super::type_cache::TypeCache;
use super::watch_cache::WatchCache;
use crate::budget::Ledger;
use crate::clock::{Clock, Instant};
use crate::ring::waiters::published;
use crate::storage::{ChangeSource, StorageError};
use crate::sync::{Mutex, MutexGuard};

/// How long after one request for progress the next one goes out, while somebody waits.
const PROGRESS_REQUEST_PERIOD: Duration = Duration::from_millis(100);

/// How soon one request for progress may follow another.
const PROGRESS_REQUEST_SPACING: Duration = Duration::from_millis(5);

/// Where types are added to the stream of changes.
#[derive(Clone, Debug)]
pub struct Feed {
    shared: Arc<FeedShared>,
}

/// What the reflector, the feed and the types' caches share.
#[derive(Debug)]
pub(super) struct FeedShared {
    /// Where the changes come from.
    pub(super) source: Arc<dyn ChangeSource>,
    /// The source of time.
    pub(super) clock: Clock,
    /// The revision that all listed types have reached.
    fresh: Arc<Freshness>,
    /// The store's revision.
    probe: RevisionProbe,
    metrics: CacheMetrics,
    /// Where the types' memory is written.
    ledger: Ledger,
    /// Types that have been added and not yet been taken over by the reflector.
    newcomers: Mutex<Vec<WatchCache>>,
    /// Told of each newcomer.
    arrived: Notify,
    /// All types.
    caches: Mutex<Vec<Arc<TypeCache>>>,
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
        let shared = Arc::new(FeedShared {
            source,
            fresh: Arc::new(Freshness::new(published, clock.clone())),
            clock,
            probe: RevisionProbe::default(),
            metrics,
            ledger,
            newcomers: Mutex::default(),
            arrived: Notify::new(),
            caches: Mutex::default(),
        });
        let reflector = Reflector::new(Arc::clone(&shared), publisher);
        (Self { shared }, reflector)
    }

    /// Adds a type. It may be added while the feed runs; it is then listed by itself.
    #[must_use]
    pub fn add_type(&self, config: TypeConfig) -> Arc<Cacher> {
        let shared = &self.shared;
        let metrics = shared.metrics.of_type(&config.group, &config.resource);
        let cache = Arc::new(TypeCache::new(
            config,
            metrics,
            shared.clock.clone(),
            Arc::clone(&shared.fresh),
        ));
        shared.caches().push(Arc::clone(&cache));
        shared.return_newcomers(vec![WatchCache::new(Arc::clone(&cache), &shared.ledger)]);
        Arc::new(Cacher::new(cache, Arc::clone(shared)))
    }

    /// Ends all watches of all types, each with a last bookmark if it wants bookmarks.
    pub fn drain(&self) {
        for cache in self.shared.caches().iter() {
            cache.drain();
        }
    }
}

impl FeedShared {
    /// Takes the types that have been added.
    pub(super) fn take_newcomers(&self) -> Vec<WatchCache> {
        std::mem::take(&mut *self.lock_newcomers())
    }

    /// Adds types, for now or for another attempt.
    pub(super) fn return_newcomers(&self, newcomers: Vec<WatchCache>) {
        self.lock_newcomers().extend(newcomers);
        self.arrived.notify_one();
    }

    /// Completes when a type has been added.
    pub(super) async fn newcomer(&self) {
        self.arrived.notified().await;
    }

    /// The store's newest revision, as of some moment after the call.
    ///
    /// # Errors
    /// What the store said; [`StorageError::Timeout`] at the deadline; [`StorageError::Internal`]
    /// when the store is behind what it has told of. Then it was put back to an older state, and
    /// what is cached would be taken for newer than it is.
    pub(super) async fn newest_revision(&self, deadline: Instant) -> Result<u64, StorageError> {
        let told = self.fresh.revision();
        let newest = self.probe.revision(&self.clock, deadline).await?;
        if newest < told {
            let message = format!(
                "the store is at revision {newest} and has told of {told}: it was put back to an \
                 older state; restart this server"
            );
            tracing::error!("{message}");
            return Err(StorageError::Internal { message });
        }
        Ok(newest)
    }

    /// Whether the feed's revision says that every event up to it has come.
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
            let again = self.fresh.is_awaited();
            tokio::select! {
                () = self.fresh.wanted() => {}
                () = self.clock.sleep(PROGRESS_REQUEST_PERIOD), if again => {}
            }
            if !self.fresh.is_awaited() || !self.progress_is_trusted() {
                continue;
            }
            if let Err(error) = self.source.request_progress().await {
                tracing::debug!(%error, "the store takes no request for progress");
            }
            self.clock.sleep(PROGRESS_REQUEST_SPACING).await;
        }
    }

    /// Sends bookmarks when they are due. Never completes.
    pub(super) async fn send_bookmarks(&self) {
        loop {
            self.clock.sleep(BOOKMARK_TICK).await;
            for cache in self.caches().iter() {
                if cache.readiness().is_ready() {
                    cache.send_due_bookmarks();
                }
            }
        }
    }

    fn lock_newcomers(&self) -> MutexGuard<'_, Vec<WatchCache>> {
        self.newcomers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn caches(&self) -> MutexGuard<'_, Vec<Arc<TypeCache>>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
