//! The caches of an upstream's resources. Each is begun when it is first asked for, and shared by all who ask.
//!
//! Nothing is spawned here: [`Caches::next_follower`] returns the tasks that fill and follow the caches, for the server
//! to run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, lock};
use ringwatch::budget::Ledger;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::cacher::{
    CacheDelegator, CacheMetrics, Feed, TypeConfig, TypeFigures, WindowLimits,
};
use ringwatch::storage::{StorageError, Versioner};

use super::contact::Contact;
use super::resource::ResourceType;
use super::source::UpstreamSource;
use super::store::UpstreamStore;
use super::upstream::Upstream;

/// Maximum number of resources that are cached at a time, far above what clusters have.
const RESOURCES_MAX: usize = 2_000;

/// The delay after which a client may ask again for a resource beyond that, in seconds.
const RETRY_AFTER_SECONDS: u32 = 10;

/// A task that fills a cache and keeps it current, until the cache is forgotten.
pub type Follower = BoxFuture<'static, ()>;

/// The caches of the resources of one upstream.
#[derive(Debug)]
pub struct Caches {
    upstream: Arc<Upstream>,
    metrics: CacheMetrics,
    ledger: Ledger,
    /// The caches that have been begun, by API version and resource.
    begun: Mutex<HashMap<(String, String), CacheStart>>,
    /// The followers that nobody runs yet, at most one for each cache that was begun.
    followers: mpsc::UnboundedSender<Follower>,
    to_run: lock::Mutex<mpsc::UnboundedReceiver<Follower>>,
}

#[derive(Debug)]
struct CacheStart {
    cached: Arc<CacheDelegator>,
    feed: Feed,
    contact: Contact,
    /// Ends the follower when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Caches {
    /// Creates the caches of an upstream, of which none is begun. They share a memory budget.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>, metrics: CacheMetrics, ledger: Ledger) -> Self {
        let (followers, to_run) = mpsc::unbounded();
        Self {
            upstream,
            metrics,
            ledger,
            begun: Mutex::default(),
            followers,
            to_run: lock::Mutex::new(to_run),
        }
    }

    /// Returns a resource with its cache in front of it, which is begun if it is not there yet. `schema` has the fields
    /// that can be selected; that of the first caller counts.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] when `RESOURCES_MAX` resources are cached.
    pub fn cached(
        &self,
        resource: &ResourceType,
        schema: &FieldSchema,
    ) -> Result<Arc<CacheDelegator>, StorageError> {
        let mut begun = self.lock();
        let name = name(resource);
        if let Some(known) = begun.get(&name) {
            return Ok(Arc::clone(&known.cached));
        }
        if begun.len() >= RESOURCES_MAX {
            return Err(StorageError::NotReady {
                reason: Some(format!("{RESOURCES_MAX} resources are cached")),
                retry_after_seconds: RETRY_AFTER_SECONDS,
            });
        }
        let new = self.begin(resource, schema);
        let cached = Arc::clone(&new.cached);
        begun.insert(name, new);
        Ok(cached)
    }

    /// Forgets a resource, which the upstream does not serve any more: its watches end and its memory is freed.
    pub fn forget(&self, resource: &ResourceType) {
        let forgotten = self.lock().remove(&name(resource));
        if let Some(CacheStart { cached, feed, .. }) = forgotten {
            feed.remove_type(cached.cacher());
        }
    }

    /// Waits until the cache of a resource is filled; returns at once if there is none.
    pub(crate) async fn filled(&self, resource: &ResourceType) -> Result<(), StorageError> {
        let cached = self
            .lock()
            .get(&name(resource))
            .map(|it| Arc::clone(&it.cached));
        match cached {
            Some(cached) => cached.cacher().ready().await,
            None => Ok(()),
        }
    }

    /// Returns how long ago the cache of a resource has lost the upstream; zero if it has not, or has never had it.
    pub fn away(&self, resource: &ResourceType) -> Duration {
        let begun = self.lock();
        let begun = begun
            .get(&name(resource))
            .filter(|it| it.cached.cacher().has_been_ready());
        begun
            .and_then(|it| it.contact.lost_for())
            .unwrap_or_default()
    }

    /// Returns the longest time for which a cache that was filled has lost the upstream; zero if none has.
    #[must_use]
    pub fn longest_away(&self) -> Duration {
        let begun = self.lock();
        let filled = begun
            .values()
            .filter(|it| it.cached.cacher().has_been_ready());
        let away = filled.filter_map(|it| it.contact.lost_for());
        away.max().unwrap_or_default()
    }

    /// Returns the figures of the resources that are cached.
    #[must_use]
    pub fn figures(&self) -> Vec<TypeFigures> {
        let begun = self.lock();
        begun.values().flat_map(|it| it.feed.figures()).collect()
    }

    /// Forgets the older half of the history of each cache, since memory is short.
    pub fn shrink_windows(&self) {
        for begun in self.lock().values() {
            begun.feed.shrink_windows();
        }
    }

    /// Ends all watches, each with a last bookmark.
    pub fn drain(&self) {
        for begun in self.lock().values() {
            begun.feed.drain();
        }
    }

    /// Returns the next follower that is to be run, once there is one. Its cache is not filled before it runs.
    pub async fn next_follower(&self) -> Follower {
        match self.to_run.lock().await.next().await {
            Some(follower) => follower,
            // The sender lives as long as this does.
            None => std::future::pending().await,
        }
    }

    fn begin(&self, resource: &ResourceType, schema: &FieldSchema) -> CacheStart {
        let upstream = || Arc::clone(&self.upstream);
        let source = Arc::new(UpstreamSource::new(upstream(), resource.clone()));
        let contact = source.contact().clone();
        let clock = self.upstream.clock().clone();
        let (feed, reflector) = Feed::new(source, clock, self.metrics.clone(), self.ledger.clone());
        let versioner = Versioner::new(schema.clone());
        let cacher = feed.add_type(
            TypeConfig::new(resource.group.clone(), resource.resource.clone())
                .with_prefix(resource.prefix.clone())
                .with_versioner(versioner.clone())
                .with_window(WindowLimits::within(self.ledger.limit())),
        );
        let store = UpstreamStore::new(upstream(), resource.clone(), versioner);
        let (stop, stopped) = oneshot::channel();
        let follower = reflector.run(stopped.map(|_: Result<(), _>| ()));
        // The receiver lives as long as this does.
        let _ = self.followers.unbounded_send(follower.boxed());
        CacheStart {
            cached: Arc::new(CacheDelegator::new(cacher, Arc::new(store))),
            feed,
            contact,
            _stop: stop,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), CacheStart>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(resource: &ResourceType) -> (String, String) {
    (resource.api_version(), resource.resource.clone())
}
