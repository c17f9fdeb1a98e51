//! The storages of resources over one backend: the store, and the watch cache in front of it unless it is switched off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::cacher::{
    CacheDelegator, CacheMetrics, Cacher, Feed, Reflector, TypeConfig, WindowLimits,
};
use ringwatch::storage::encryption::{Encryption, Transformer};
use ringwatch::storage::{Interface, StorageMediaType, Versioner, etcd3};
use tokio::sync::watch;

use super::object_counts::ObjectCounts;
use super::watch_cache_sizes::WatchCacheSizes;
use crate::traced_storage::{Layer, TracedStorage};
use crate::{DefaultsOnRead, Resource};

/// Groups whose objects kube-apiserver stores as JSON whatever the storage media type.
const JSON_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Makes the storages of resources.
#[derive(Debug)]
pub struct StorageFactory {
    /// The backend that keeps the objects.
    pub backend: Arc<dyn Backend>,
    /// The backends of resources that are kept elsewhere. They have no watch cache.
    pub others: Vec<OtherBackend>,
    /// The prefix of all keys.
    pub prefix: String,
    /// The form in which objects are written.
    pub media_type: StorageMediaType,
    /// The encryption at rest.
    pub encryption: Encryption,
    /// The resources that have a watch cache.
    pub caches: WatchCacheSizes,
    /// True if operations are spans of the requests that need them.
    pub has_spans: bool,
    /// True if lists of shards are answered by indexes that the caches keep: ShardedListAndWatch.
    pub shard_indexes: bool,
    /// The metrics of lists from the store.
    pub list_metrics: etcd3::ListMetrics,
    /// The metrics of requests to the backend.
    pub request_metrics: etcd3::RequestMetrics,
    /// The metrics of the caches.
    pub metrics: CacheMetrics,
    /// Counts the objects of everything that is stored.
    pub counts: ObjectCounts,
    /// The longest time for which objects that expire share a lease; 0 if they share none.
    pub lease_reuse: Duration,
    /// The revision up to which history is compacted.
    pub compact_revision: watch::Receiver<u64>,
    /// The memory budget of the caches.
    pub ledger: Ledger,
    /// The clock of the storages and caches.
    pub clock: Clock,
}

/// A backend that keeps the objects of some resources alone.
#[derive(Debug)]
pub struct OtherBackend {
    /// The group and plural of each of these resources.
    pub types: Vec<(String, String)>,
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The revision up to which its history is compacted.
    pub compact_revision: watch::Receiver<u64>,
}

/// The storage of one type.
#[derive(Debug)]
pub struct JoinedStorage {
    /// The storage, with the cache in front of it.
    pub storage: Arc<dyn Interface>,
    /// The cache, unless it is switched off.
    pub cacher: Option<Arc<Cacher>>,
}

impl StorageFactory {
    /// Returns the feed for the caches of these resources and of types added later, and the reflector that fills them.
    #[must_use]
    pub fn feed(&self, resources: &[Arc<Resource>]) -> (Feed, Reflector) {
        let changes = etcd3::Changes::new(Arc::clone(&self.backend), &self.prefix);
        let changes = changes
            .counted(self.requests_by_prefix(resources))
            .decrypting(self.transformers(resources), self.encryption.clone());
        Feed::new(
            Arc::new(changes),
            self.clock.clone(),
            self.metrics.clone(),
            self.ledger.clone(),
        )
    }

    /// Returns the storage of a built-in resource. Its cache is fed and its objects are counted from now on.
    #[must_use]
    pub fn join_built_in(&self, feed: &Feed, resource: &Arc<Resource>) -> JoinedStorage {
        let group = resource.group_version.group.as_str();
        let versioner = self.versioner(resource);
        self.join(
            feed,
            &resource.storage_prefix,
            group,
            &resource.plural,
            versioner,
        )
    }

    /// Returns the metrics of requests by the prefix of each type's keys. Resources that share a storage are counted as
    /// the first of them.
    fn requests_by_prefix(
        &self,
        resources: &[Arc<Resource>],
    ) -> BTreeMap<String, etcd3::TypeRequestMetrics> {
        let mut types = BTreeMap::new();
        for resource in resources {
            let group = &resource.group_version.group;
            let prefix = format!("/{}/", resource.storage_prefix);
            let requests = || self.request_metrics.of_type(group, &resource.plural);
            types.entry(prefix).or_insert_with(requests);
        }
        types
    }

    /// Returns how the values of each built-in type are decrypted, by what its keys begin with.
    fn transformers(&self, resources: &[Arc<Resource>]) -> BTreeMap<String, Transformer> {
        let mut types = BTreeMap::new();
        for resource in resources {
            let prefix = format!("/{}/", resource.storage_prefix);
            let group = &resource.group_version.group;
            let transformer = || self.encryption.transformer(&resource.plural, group);
            types.entry(prefix).or_insert_with(transformer);
        }
        types
    }

    /// Returns how the objects of a built-in resource are written.
    fn versioner(&self, resource: &Arc<Resource>) -> Versioner {
        let json = JSON_GROUPS.contains(&resource.group_version.group.as_str());
        let media_type = if json {
            StorageMediaType::Json
        } else {
            self.media_type
        };
        Versioner::new(resource.schema.clone())
            .writing(media_type)
            .completing(Arc::new(DefaultsOnRead::new(Arc::clone(resource))))
    }

    /// Returns the storage of a built-in resource, without a cache before it.
    #[must_use]
    pub fn uncached_of(&self, resource: &Arc<Resource>) -> Arc<dyn Interface> {
        let group = resource.group_version.group.as_str();
        let versioner = self.versioner(resource);
        self.uncached(&resource.storage_prefix, group, &resource.plural, versioner)
    }

    fn uncached(
        &self,
        prefix: &str,
        group: &str,
        plural: &str,
        versioner: Versioner,
    ) -> Arc<dyn Interface> {
        let other = self.other(group, plural);
        let backend = other.map_or(&self.backend, |it| &it.backend);
        let compacted = other.map_or(&self.compact_revision, |it| &it.compact_revision);
        let store = self.store((backend, compacted), prefix, versioner);
        let lists = self.list_metrics.of_type(group, plural);
        let requests = self.request_metrics.of_type(group, plural);
        let store: Arc<dyn Interface> = Arc::new(
            store
                .counted(lists, requests)
                .encrypted(self.encryption.transformer(plural, group)),
        );
        self.traced(store, Layer::Store, group, plural)
    }

    /// Returns the storage of a type so that its operations are spans, if there are any.
    fn traced(
        &self,
        storage: Arc<dyn Interface>,
        layer: Layer,
        group: &str,
        plural: &str,
    ) -> Arc<dyn Interface> {
        match self.has_spans {
            true => Arc::new(TracedStorage::new(storage, layer, group, plural)),
            false => storage,
        }
    }

    /// Returns the storage of a type under a prefix, named by group and plural. Its cache is fed and its objects are
    /// counted from now on.
    #[must_use]
    pub fn join(
        &self,
        feed: &Feed,
        prefix: &str,
        group: &str,
        plural: &str,
        versioner: Versioner,
    ) -> JoinedStorage {
        let joined = self.uncounted(feed, prefix, group, plural, versioner);
        self.counts.add(group, plural, &joined.storage);
        joined
    }

    fn uncounted(
        &self,
        feed: &Feed,
        prefix: &str,
        group: &str,
        plural: &str,
        versioner: Versioner,
    ) -> JoinedStorage {
        let store = self.uncached(prefix, group, plural, versioner.clone());
        if !self.caches.cached(group, plural) || self.other(group, plural).is_some() {
            return JoinedStorage {
                storage: store,
                cacher: None,
            };
        }
        let cacher = feed.add_type(
            TypeConfig::new(group, plural)
                .with_prefix(format!("/{prefix}/"))
                .with_versioner(versioner)
                .with_window(WindowLimits::within(self.ledger.limit()))
                .with_shard_indexes(self.shard_indexes),
        );
        let storage = Arc::new(CacheDelegator::new(Arc::clone(&cacher), store));
        JoinedStorage {
            storage: self.traced(storage, Layer::Cache, group, plural),
            cacher: Some(cacher),
        }
    }

    /// Returns a storage below a prefix of its own, for internal data of the servers: without a cache, without
    /// encryption, and not counted.
    #[must_use]
    pub fn plain(&self, prefix: &str) -> Arc<dyn Interface> {
        let versioner = Versioner::default().writing(self.media_type);
        let place = (&self.backend, &self.compact_revision);
        Arc::new(self.store(place, prefix, versioner))
    }

    /// Returns the backend of a resource that is kept elsewhere.
    fn other(&self, group: &str, plural: &str) -> Option<&OtherBackend> {
        let is_it =
            |(its_group, its_plural): &(String, String)| its_group == group && its_plural == plural;
        self.others.iter().find(|it| it.types.iter().any(is_it))
    }

    fn store(
        &self,
        (backend, compacted): (&Arc<dyn Backend>, &watch::Receiver<u64>),
        prefix: &str,
        versioner: Versioner,
    ) -> etcd3::Store {
        etcd3::Store::new(
            Arc::clone(backend),
            etcd3::Config::new(
                self.prefix.clone(),
                format!("/{prefix}"),
                self.clock.clone(),
            )
            .with_versioner(versioner)
            .with_compact_revision(compacted.clone()),
        )
        .sharing_leases(self.lease_reuse)
    }

    /// Stops counting a type's objects and feeding its cache, and ends its watches.
    pub fn leave(&self, feed: &Feed, joined: &JoinedStorage) {
        self.counts.remove(&joined.storage);
        if let Some(cacher) = &joined.cacher {
            feed.remove_type(cacher);
        }
    }
}
