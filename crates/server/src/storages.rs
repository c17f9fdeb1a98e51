//! The stores of all built-in resources over one backend, with admission and all else that their writes need.
//!
//! Resources that are stored under the same prefix (the versions of one kind, events in both their
//! groups) share one storage, so that a write through one is seen through the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwatch::storage::Interface;
use ringwatch::storage::cacher::{Cacher, Feed, Reflector};
use ringwatch_admission::PluginSet;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_authorization::Authorizer;
use ringwatch_registry::storage_factory::StorageFactory;
use ringwatch_registry::{Resource, Served, Store, Stores};
use ringwatch_resources::allocation::{NODE_PORT_RANGES, ServiceAllocator};
use ringwatch_resources::built_in;

use super::admission::Admission;
use super::component_statuses::ComponentStatuses;
use super::write_guards::Guards;

/// Where events are kept, of both groups.
const EVENTS: &str = "events";

/// A resource, and the storage of its objects.
type ServedResource = (Arc<Resource>, Arc<dyn Interface>);

/// The needs of the stores of built-in resources besides their storages.
#[derive(Debug)]
pub struct StoreOptions {
    /// The admission plugins.
    pub plugins: PluginSet,
    /// Serves ComponentStatuses, which are not stored.
    pub components: Arc<ComponentStatuses>,
    /// For how long an event is kept; 0 for ever.
    pub event_ttl: Duration,
    /// Authorizes the checks that expressions make.
    pub authorizer: Arc<Authorizer>,
}

/// The stores of all built-in resources, and what must run for them.
#[derive(Debug)]
pub struct Storages {
    /// The stores, in the order of discovery.
    pub stores: Stores,
    /// Resources that discovery shows though no store serves them.
    pub storeless: Vec<Arc<Resource>>,
    /// The caches.
    pub cachers: Vec<Arc<Cacher>>,
    /// The admission plugins.
    pub admission: Admission,
    /// Feeds the caches, and ends their watches.
    pub feed: Feed,
    /// Allocates the addresses and ports of services.
    pub allocator: Option<Arc<ServiceAllocator>>,
}

impl Storages {
    /// Makes the stores of all built-in resources. Nothing is read until the reflector runs, which fills the caches.
    #[must_use]
    pub fn new(factory: &StorageFactory, options: StoreOptions) -> (Self, Reflector) {
        let resources = built_in();
        let (feed, reflector) = factory.feed(&resources);
        let (mut storeless, mut cachers) = (Vec::new(), Vec::new());
        let mut by_prefix: BTreeMap<String, Arc<dyn Interface>> = BTreeMap::new();
        let mut served: Vec<ServedResource> = Vec::new();
        for resource in resources {
            let storage = match resource.served {
                Served::Handler => {
                    storeless.push(resource);
                    continue;
                }
                Served::Computed => Arc::clone(&options.components) as Arc<dyn Interface>,
                Served::Store => {
                    let join = || {
                        let joined = factory.join_built_in(&feed, &resource);
                        cachers.extend(joined.cacher);
                        joined.storage
                    };
                    let prefix = resource.storage_prefix.clone();
                    Arc::clone(by_prefix.entry(prefix).or_insert_with(join))
                }
            };
            served.push((resource, storage));
        }
        let allocator = allocator(factory, &served);
        let admission = Admission::new(
            options.plugins,
            &options.authorizer,
            served.clone(),
            &by_prefix,
            &factory.clock,
        );
        let guards = Guards::new(&by_prefix, admission.types.as_ref());
        let stores = served.into_iter().map(|(resource, storage)| {
            let guard = guards.of(&resource);
            let ttl = (resource.storage_prefix == EVENTS).then_some(options.event_ttl.as_secs());
            let is_service = resource.qualified_name() == "services";
            let allocator = allocator.as_ref().filter(|_| is_service);
            let store = Store::new(resource, storage)
                .with_guard(guard)
                .with_admission(Arc::clone(&admission.chain) as _)
                .with_ttl(ttl);
            Arc::new(match allocator {
                Some(allocator) => store.with_allocator(Arc::clone(allocator) as _),
                None => store,
            })
        });
        let stores = stores.collect();
        let storages = Self {
            stores,
            storeless,
            cachers,
            admission,
            feed,
            allocator,
        };
        (storages, reflector)
    }

    /// Returns the group versions that are served.
    #[must_use]
    pub fn group_versions(&self) -> BTreeSet<GroupVersion> {
        let stored = self.stores.iter().map(|store| store.resource());
        let all = stored.chain(&self.storeless);
        all.map(|resource| resource.group_version.clone()).collect()
    }
}

/// Returns the allocator of services, if what it records allocations in is served.
fn allocator(factory: &StorageFactory, served: &[ServedResource]) -> Option<Arc<ServiceAllocator>> {
    let store = |name: &str| {
        let mut served = served.iter();
        let (resource, storage) = served.find(|(it, _)| it.qualified_name() == name)?;
        Some(Store::new(Arc::clone(resource), Arc::clone(storage)))
    };
    let addresses = store("ipaddresses.networking.k8s.io")?;
    let ranges = store("servicecidrs.networking.k8s.io")?;
    let ports = factory.plain(NODE_PORT_RANGES);
    let clock = factory.clock.clone();
    Some(Arc::new(ServiceAllocator::new(
        addresses, ranges, ports, clock,
    )))
}
