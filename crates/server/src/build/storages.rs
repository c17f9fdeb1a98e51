//! The storages of all built-in resources over one backend.
//!
//! Resources that are stored under the same prefix (the versions of one kind, events in both their
//! groups) share one storage, so that a write through one is seen through the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::storage::Interface;
use ringwatch::storage::cacher::{Cacher, Feed, Reflector};
use ringwatch_admission::ServedType;
use ringwatch_controllers::component_statuses::ComponentStatuses;
use ringwatch_endpoints::ServiceAddresses;
use ringwatch_registry::storage_factory::StorageFactory;
use ringwatch_registry::{Resource, ServedBy, Store};
use ringwatch_resources::{ClusterOptions, built_in_with};

/// The storages of built-in resources.
#[derive(Debug)]
pub(crate) struct Storages {
    /// The factory that made them, and makes those of custom resources.
    pub(crate) factory: Arc<StorageFactory>,
    /// The resources that stores serve, each with its storage, in the order of discovery.
    pub(crate) served: Vec<ServedType>,
    /// Resources that discovery lists and handlers serve, without a store.
    pub(crate) storeless: Vec<Arc<Resource>>,
    /// The watch caches, one a storage.
    pub(crate) cachers: Vec<Arc<Cacher>>,
    /// The feed of the caches.
    pub(crate) feed: Feed,
    by_prefix: BTreeMap<String, Arc<dyn Interface>>,
}

impl Storages {
    /// Makes the storages of the resources of a cluster; `components` is that of ComponentStatuses, which are not
    /// stored. Nothing is read until the reflector runs, which fills the caches.
    pub(crate) fn new(
        factory: Arc<StorageFactory>,
        options: &ClusterOptions,
        components: &Arc<ComponentStatuses>,
    ) -> (Self, Reflector) {
        let resources = built_in_with(options);
        let (feed, reflector) = factory.feed(&resources);
        let mut storages = Self {
            factory,
            served: Vec::new(),
            storeless: Vec::new(),
            cachers: Vec::new(),
            feed,
            by_prefix: BTreeMap::new(),
        };
        for resource in resources {
            let storage = match resource.served {
                ServedBy::Handler => {
                    storages.storeless.push(resource);
                    continue;
                }
                ServedBy::Computed => Arc::clone(components) as Arc<dyn Interface>,
                ServedBy::Store => storages.join(&resource),
            };
            storages.served.push((resource, storage));
        }
        (storages, reflector)
    }

    /// Returns the storage of a resource, which is that of an earlier one with the same prefix or joins the feed.
    fn join(&mut self, resource: &Arc<Resource>) -> Arc<dyn Interface> {
        if let Some(storage) = self.by_prefix.get(&resource.storage_prefix) {
            return Arc::clone(storage);
        }
        let joined = self.factory.join_built_in(&self.feed, resource);
        self.cachers.extend(joined.cacher);
        let prefix = resource.storage_prefix.clone();
        self.by_prefix.insert(prefix, Arc::clone(&joined.storage));
        joined.storage
    }

    /// Returns the storage of the built-in resources under a prefix, such as `pods`; `None` if there are none.
    pub(crate) fn get(&self, prefix: &str) -> Option<Arc<dyn Interface>> {
        self.by_prefix.get(prefix).cloned()
    }

    /// Returns the storage under a prefix; a new one without cache if no built-in resource has it.
    pub(crate) fn get_or_empty(&self, prefix: &str) -> Arc<dyn Interface> {
        self.get(prefix)
            .unwrap_or_else(|| self.factory.plain(prefix))
    }

    /// Returns a store of a resource, such as `pods` or `leases.coordination.k8s.io`, for the server's own use: without
    /// admission, and without allocation of addresses and ports.
    pub(crate) fn bare_store(&self, qualified_name: &str) -> Option<Store> {
        let mut served = self.served.iter();
        let (resource, storage) = served.find(|(it, _)| it.qualified_name() == qualified_name)?;
        Some(Store::new(Arc::clone(resource), Arc::clone(storage)))
    }

    /// Returns the storages in which the addresses of Services are found.
    pub(crate) fn service_addresses(&self) -> ServiceAddresses {
        ServiceAddresses {
            services: self.get_or_empty("services/specs"),
            slices: self.get_or_empty("endpointslices"),
        }
    }
}
