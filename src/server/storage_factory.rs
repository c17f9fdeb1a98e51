//! From a backend to the stores of all resources: the store, the watch cache in front of it unless
//! it is switched off, and the registry's store on top.
//!
//! Resources that are stored under the same prefix (the versions of one kind, events in both their
//! groups) share one storage, so that a write through one is seen through the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::watch_cache_sizes::WatchCacheSizes;
use crate::budget::Ledger;
use crate::clock::Clock;
use crate::registry::resources::built_in;
use crate::registry::{Lifecycle, NamespaceLifecycle, Resource, Served, Store};
use crate::storage::backend::Backend;
use crate::storage::cacher::{
    CacheDelegator, CacheMetrics, Cacher, Feed, Reflector, TypeConfig, WindowLimits,
};
use crate::storage::{Interface, StorageMediaType, Versioner, etcd3};

/// Where namespaces are stored.
const NAMESPACES: &str = "namespaces";

/// Groups whose servers, in kube-apiserver, write JSON whatever the others write.
const JSON_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// What storages are made with.
#[derive(Debug)]
pub struct StorageFactory {
    /// Where objects are kept.
    pub backend: Arc<dyn Backend>,
    /// What all keys begin with.
    pub prefix: String,
    /// The form in which objects are written.
    pub media_type: StorageMediaType,
    /// Which resources are served from memory.
    pub caches: WatchCacheSizes,
    /// What lists from the store count.
    pub list_metrics: etcd3::ListMetrics,
    /// What is asked of the backend counts.
    pub request_metrics: etcd3::RequestMetrics,
    /// What the caches count.
    pub metrics: CacheMetrics,
    /// Up to where history is compacted.
    pub compact_revision: watch::Receiver<u64>,
    /// What the caches spend memory from.
    pub ledger: Ledger,
    /// The time.
    pub clock: Clock,
}

/// The stores of all resources, and what must run for them.
#[derive(Debug)]
pub struct Storages {
    /// The stores, in the order of discovery.
    pub stores: Vec<Arc<Store>>,
    /// Resources that discovery shows though no store serves them.
    pub storeless: Vec<Arc<Resource>>,
    /// The storages by the qualified name of their resource, such as `deployments.apps`.
    pub by_resource: BTreeMap<String, Arc<dyn Interface>>,
    /// The caches.
    pub cachers: Vec<Arc<Cacher>>,
    /// Where the caches end their watches.
    pub feed: Feed,
}

impl StorageFactory {
    /// Makes the stores of all built-in resources. Nothing is read until the reflector runs, which
    /// fills the caches.
    #[must_use]
    pub fn build(self) -> (Storages, Reflector) {
        let resources = built_in();
        let changes = etcd3::Changes::new(Arc::clone(&self.backend), &self.prefix);
        let changes = changes.counted(self.requests_by_prefix(&resources));
        let (feed, reflector) = Feed::new(
            Arc::new(changes),
            self.clock.clone(),
            self.metrics.clone(),
            self.ledger.clone(),
        );
        let mut storages = Storages {
            stores: Vec::new(),
            storeless: Vec::new(),
            by_resource: BTreeMap::new(),
            cachers: Vec::new(),
            feed,
        };
        let mut by_prefix: BTreeMap<String, Arc<dyn Interface>> = BTreeMap::new();
        let mut served = Vec::new();
        for resource in resources {
            if resource.served == Served::Store {
                let storage = by_prefix
                    .entry(resource.storage_prefix.clone())
                    .or_insert_with(|| self.storage(&resource, &mut storages));
                served.push((resource, Arc::clone(storage)));
            } else {
                storages.storeless.push(resource);
            }
        }
        let lifecycle = by_prefix.get(NAMESPACES).map(|namespaces| {
            let lifecycle = Lifecycle::new(Arc::clone(namespaces), self.clock.clone());
            Arc::new(lifecycle) as Arc<dyn NamespaceLifecycle>
        });
        let stores = served.into_iter();
        storages.stores = stores
            .map(|(resource, storage)| Arc::new(Store::new(resource, storage, lifecycle.clone())))
            .collect();
        (storages, reflector)
    }

    /// What counts the requests for each type, by what its keys begin with. Resources that share a
    /// storage are counted as the first of them.
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

    /// The storage of a resource, which is the first with its prefix.
    fn storage(&self, resource: &Resource, storages: &mut Storages) -> Arc<dyn Interface> {
        let group = &resource.group_version.group;
        let media_type = if JSON_GROUPS.contains(&&**group) {
            StorageMediaType::Json
        } else {
            self.media_type
        };
        let versioner = Versioner::new(resource.schema.clone()).writing(media_type);
        let store = etcd3::Store::new(
            Arc::clone(&self.backend),
            etcd3::Config {
                path_prefix: self.prefix.clone(),
                resource_prefix: format!("/{}", resource.storage_prefix),
                versioner: versioner.clone(),
                clock: self.clock.clone(),
                compact_revision: Some(self.compact_revision.clone()),
            },
        );
        let lists = self.list_metrics.of_type(group, &resource.plural);
        let requests = self.request_metrics.of_type(group, &resource.plural);
        let store: Arc<dyn Interface> = Arc::new(store.counted(lists, requests));
        let storage = if self.caches.cached(group, &resource.plural) {
            let cacher = storages.feed.add_type(TypeConfig {
                group: group.clone(),
                resource: resource.plural.clone(),
                prefix: format!("/{}/", resource.storage_prefix),
                versioner,
                window: WindowLimits::within(self.ledger.limit()),
            });
            storages.cachers.push(Arc::clone(&cacher));
            Arc::new(CacheDelegator::new(cacher, store))
        } else {
            store
        };
        let name = resource.qualified_name();
        storages.by_resource.insert(name, Arc::clone(&storage));
        storage
    }
}

impl Storages {
    /// The store of a resource of the core.
    #[must_use]
    pub fn core(&self, plural: &str) -> Option<&Arc<Store>> {
        self.stores.iter().find(|store| {
            let resource = store.resource();
            resource.group_version.group.is_empty() && resource.plural == plural
        })
    }
}
