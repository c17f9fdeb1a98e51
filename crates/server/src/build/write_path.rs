//! The stores of all built-in resources: their storages, with admission and all else that writes need.

use std::sync::Arc;
use std::time::Duration;

use ringwatch_admission::Chain;
use ringwatch_registry::{DeletionSettings, Store, Stores};
use ringwatch_resources::allocation::{NODE_PORT_RANGES, ServiceAllocator};

use super::storages::Storages;
use super::write_guards::Guards;
use crate::config::flags::ServiceFlags;

/// The storage prefix of events, of both groups.
const EVENTS: &str = "events";

/// The parts that a write of a built-in resource passes.
#[derive(Debug)]
pub(crate) struct WritePath {
    /// The admission plugins.
    pub(crate) admission: Arc<Chain>,
    /// The write guards.
    pub(crate) guards: Guards,
    /// Allocates the addresses and ports of services; `None` if they are not recorded.
    pub(crate) allocator: Option<Arc<ServiceAllocator>>,
    /// The settings of deletions.
    pub(crate) deletion: DeletionSettings,
    /// The time for which an event is kept; 0 for ever.
    pub(crate) event_ttl: Duration,
}

impl WritePath {
    /// Makes the stores over these storages, in the order of discovery.
    pub(crate) fn stores(&self, storages: &Storages) -> Stores {
        let stores = storages.served.iter().map(|(resource, storage)| {
            let ttl = (resource.storage_prefix == EVENTS).then_some(self.event_ttl.as_secs());
            let store = Store::new(Arc::clone(resource), Arc::clone(storage))
                .with_guard(self.guards.get(resource))
                .with_admission(Arc::clone(&self.admission) as _)
                .with_deletion(self.deletion)
                .with_ttl(ttl);
            let is_service = resource.qualified_name() == "services";
            Arc::new(match self.allocator.as_ref().filter(|_| is_service) {
                Some(allocator) => store.with_allocator(Arc::clone(allocator) as _),
                None => store,
            })
        });
        stores.collect()
    }
}

/// Returns the allocator of services, with the ranges of these flags, if the resources in which it records allocations
/// are served.
pub(crate) fn service_allocator(
    storages: &Storages,
    flags: &ServiceFlags,
) -> Option<Arc<ServiceAllocator>> {
    let addresses = storages.bare_store("ipaddresses.networking.k8s.io")?;
    let ranges = storages.bare_store("servicecidrs.networking.k8s.io")?;
    let ports = (
        storages.factory.plain(NODE_PORT_RANGES),
        flags.service_node_port_range.clone(),
    );
    let families = flags.service_cluster_ip_range.families();
    let clock = storages.factory.clock.clone();
    Some(Arc::new(ServiceAllocator::new(
        addresses, ranges, ports, families, clock,
    )))
}
