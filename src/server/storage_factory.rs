//! From a backend to the stores of all resources: the store, the watch cache in front of it unless
//! it is switched off, and the registry's store on top.
//!
//! Resources that are stored under the same prefix (the versions of one kind, events in both their
//! groups) share one storage, so that a write through one is seen through the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::admission::Admission;
use super::component_statuses::ComponentStatuses;
use super::object_counts::ObjectCounts;
use super::watch_cache_sizes::WatchCacheSizes;
use super::write_guards::Guards;
use crate::budget::Ledger;
use crate::clock::Clock;
use crate::registry::admission::PluginSet;
use crate::registry::allocation::{Allocator, NODE_PORT_RANGES};
use crate::registry::authorization::Authorizer;
use crate::registry::resources::built_in;
use crate::registry::{
    DefaultsOnRead, GroupVersion, Resource, SERVER_LEASES, Served, ServerLeases, Store,
};
use crate::storage::backend::Backend;
use crate::storage::cacher::{
    CacheDelegator, CacheMetrics, Cacher, Feed, Reflector, TypeConfig, WindowLimits,
};
use crate::storage::encryption::{EncryptionConfig, Transformer};
use crate::storage::{Interface, StorageMediaType, Versioner, etcd3};

/// Where events are kept, of both groups.
const EVENTS: &str = "events";

/// Groups whose servers, in kube-apiserver, write JSON whatever the others write.
const JSON_GROUPS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Makes the storages of resources.
#[derive(Debug)]
pub struct StorageFactory {
    /// Where objects are kept.
    pub backend: Arc<dyn Backend>,
    /// The prefix of all keys.
    pub prefix: String,
    /// The form in which objects are written.
    pub media_type: StorageMediaType,
    /// Which resources are encrypted.
    pub encryption: EncryptionConfig,
    /// Which resources are served from memory.
    pub caches: WatchCacheSizes,
    /// The admission plugins.
    pub plugins: PluginSet,
    /// Serves ComponentStatuses, which are not stored.
    pub components: Arc<ComponentStatuses>,
    /// For how long an event is kept; 0 for ever.
    pub event_ttl: Duration,
    /// The metrics of lists from the store.
    pub list_metrics: etcd3::ListMetrics,
    /// The metrics of requests to the backend.
    pub request_metrics: etcd3::RequestMetrics,
    /// The metrics of the caches.
    pub metrics: CacheMetrics,
    /// Counts the objects of everything that is stored.
    pub counts: ObjectCounts,
    /// Up to where history is compacted.
    pub compact_revision: watch::Receiver<u64>,
    /// The memory budget of the caches.
    pub ledger: Ledger,
    /// Authorizes the checks that expressions make.
    pub authorizer: Arc<Authorizer>,
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
    /// The caches.
    pub cachers: Vec<Arc<Cacher>>,
    /// The admission plugins.
    pub admission: Admission,
    /// Where the caches end their watches.
    pub feed: Feed,
    /// How many objects there are, and how large.
    pub counts: ObjectCounts,
    /// Allocates addresses and ports.
    pub allocator: Option<Arc<Allocator>>,
}

/// The storage of one type.
#[derive(Debug)]
pub struct Joined {
    /// The storage, with the cache before it.
    pub storage: Arc<dyn Interface>,
    /// The cache, unless it is switched off.
    pub cacher: Option<Arc<Cacher>>,
}

impl StorageFactory {
    /// Makes the stores of all built-in resources. Nothing is read until the reflector runs, which
    /// fills the caches.
    #[must_use]
    pub fn build(&self) -> (Storages, Reflector) {
        let resources = built_in();
        let changes = etcd3::Changes::new(Arc::clone(&self.backend), &self.prefix);
        let changes = changes
            .counted(self.requests_by_prefix(&resources))
            .decrypting(
                self.encrypted_by_prefix(&resources),
                self.encryption.clone(),
            );
        let (feed, reflector) = Feed::new(
            Arc::new(changes),
            self.clock.clone(),
            self.metrics.clone(),
            self.ledger.clone(),
        );
        let mut storages = Storages {
            stores: Vec::new(),
            storeless: Vec::new(),
            cachers: Vec::new(),
            admission: Admission::default(),
            feed,
            counts: self.counts.clone(),
            allocator: None,
        };
        let mut by_prefix: BTreeMap<String, Arc<dyn Interface>> = BTreeMap::new();
        let mut served = Vec::new();
        for resource in resources {
            let storage = match resource.served {
                Served::Handler => {
                    storages.storeless.push(resource);
                    continue;
                }
                Served::Computed => Arc::clone(&self.components) as Arc<dyn Interface>,
                Served::Store => {
                    let prefix = resource.storage_prefix.clone();
                    let join = || self.join_built_in(&resource, &mut storages);
                    Arc::clone(by_prefix.entry(prefix).or_insert_with(join))
                }
            };
            served.push((resource, storage));
        }
        storages.admission = Admission::new(self, served.clone(), &by_prefix);
        let chain = &storages.admission.chain;
        let guards = Guards::new(&by_prefix, storages.admission.types.as_ref());
        let stores = served.into_iter().map(|(resource, storage)| {
            let guard = guards.of(&resource);
            let ttl = (resource.storage_prefix == EVENTS).then_some(self.event_ttl.as_secs());
            let store = Store::new(resource, storage).with_guard(guard);
            Arc::new(store.with_admission(Arc::clone(chain)).with_ttl(ttl))
        });
        storages.stores = stores.collect();
        self.allocate(&mut storages);
        (storages, reflector)
    }

    /// The storage of a built-in resource, with the cache before it.
    fn join_built_in(
        &self,
        resource: &Arc<Resource>,
        storages: &mut Storages,
    ) -> Arc<dyn Interface> {
        let group = resource.group_version.group.as_str();
        let name = (group, resource.plural.as_str());
        let versioner = self.versioner(resource);
        let joined = self.join(&storages.feed, &resource.storage_prefix, name, versioner);
        storages.cachers.extend(joined.cacher);
        joined.storage
    }

    /// Has services get addresses and ports of the nodes.
    fn allocate(&self, storages: &mut Storages) {
        let of = |group, plural| storages.of((group, plural)).map(|store| store.admitted());
        let network = "networking.k8s.io";
        let (Some(addresses), Some(ranges)) =
            (of(network, "ipaddresses"), of(network, "servicecidrs"))
        else {
            return;
        };
        let versioner = Versioner::default().writing(self.media_type);
        let ports = Arc::new(self.store(NODE_PORT_RANGES, versioner));
        let allocator = Allocator::new(addresses, ranges, ports, self.clock.clone());
        let allocator = Arc::new(allocator);
        for store in &mut storages.stores {
            if store.resource().qualified_name() == "services" {
                let allocating = Store::clone(store).with_allocator(Arc::clone(&allocator));
                *store = Arc::new(allocating);
            }
        }
        storages.allocator = Some(allocator);
    }

    /// Returns the metrics of requests by the prefix of each type's keys. Resources that share a storage are counted as the
    /// first of them.
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

    /// How the values of each encrypted built-in type are read, by what its keys begin with.
    fn encrypted_by_prefix(&self, resources: &[Arc<Resource>]) -> BTreeMap<String, Transformer> {
        let mut types = BTreeMap::new();
        for resource in resources {
            let prefix = format!("/{}/", resource.storage_prefix);
            let group = &resource.group_version.group;
            let transformer = || self.encryption.transformer(&resource.plural, group);
            types.entry(prefix).or_insert_with(transformer);
        }
        types.retain(|_, transformer| !transformer.is_identity());
        types
    }

    /// How the objects of a built-in resource are written.
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

    /// The storage of a built-in resource, without a cache before it.
    #[must_use]
    pub fn uncached_of(&self, resource: &Arc<Resource>) -> Arc<dyn Interface> {
        let name = (
            resource.group_version.group.as_str(),
            resource.plural.as_str(),
        );
        self.uncached(&resource.storage_prefix, name, self.versioner(resource))
    }

    fn uncached(
        &self,
        prefix: &str,
        (group, plural): (&str, &str),
        versioner: Versioner,
    ) -> Arc<dyn Interface> {
        let store = self.store(prefix, versioner);
        let lists = self.list_metrics.of_type(group, plural);
        let requests = self.request_metrics.of_type(group, plural);
        Arc::new(
            store
                .counted(lists, requests)
                .encrypted(self.encryption.transformer(plural, group)),
        )
    }

    /// The storage of a type under a prefix, named by group and plural. Its cache is fed and its objects are counted
    /// from now on.
    #[must_use]
    pub fn join(
        &self,
        feed: &Feed,
        prefix: &str,
        (group, plural): (&str, &str),
        versioner: Versioner,
    ) -> Joined {
        let joined = self.uncounted(feed, prefix, (group, plural), versioner);
        self.counts.add(group, plural, &joined.storage);
        joined
    }

    fn uncounted(
        &self,
        feed: &Feed,
        prefix: &str,
        (group, plural): (&str, &str),
        versioner: Versioner,
    ) -> Joined {
        let store = self.uncached(prefix, (group, plural), versioner.clone());
        if !self.caches.cached(group, plural) {
            return Joined {
                storage: store,
                cacher: None,
            };
        }
        let cacher = feed.add_type(TypeConfig {
            group: group.to_owned(),
            resource: plural.to_owned(),
            prefix: format!("/{prefix}/"),
            versioner,
            window: WindowLimits::within(self.ledger.limit()),
        });
        Joined {
            storage: Arc::new(CacheDelegator::new(Arc::clone(&cacher), store)),
            cacher: Some(cacher),
        }
    }

    /// Where servers of the same store tell each other their addresses.
    #[must_use]
    pub fn server_leases(&self) -> ServerLeases {
        let versioner = Versioner::default().writing(self.media_type);
        ServerLeases::new(Arc::new(self.store(SERVER_LEASES, versioner)))
    }

    fn store(&self, prefix: &str, versioner: Versioner) -> etcd3::Store {
        etcd3::Store::new(
            Arc::clone(&self.backend),
            etcd3::Config {
                path_prefix: self.prefix.clone(),
                resource_prefix: format!("/{prefix}"),
                versioner,
                clock: self.clock.clone(),
                compact_revision: Some(self.compact_revision.clone()),
            },
        )
    }

    /// Ends the counting of a type's objects and the feeding of its cache, and its watches with it.
    pub fn leave(&self, feed: &Feed, joined: &Joined) {
        self.counts.remove(&joined.storage);
        if let Some(cacher) = &joined.cacher {
            feed.remove_type(cacher);
        }
    }
}

impl Storages {
    /// The versions of groups that are served.
    #[must_use]
    pub fn group_versions(&self) -> BTreeSet<GroupVersion> {
        let stored = self.stores.iter().map(|store| store.resource());
        let all = stored.chain(&self.storeless);
        all.map(|resource| resource.group_version.clone()).collect()
    }

    /// The store of a resource, named by group and plural.
    #[must_use]
    pub fn of(&self, (group, plural): (&str, &str)) -> Option<&Arc<Store>> {
        self.stores.iter().find(|store| {
            let resource = store.resource();
            resource.group_version.group == group && resource.plural == plural
        })
    }
}
