//! The controller of the Endpoints of the API.

use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_controllers::{SERVER_LEASES, ServerLeases};

use super::inputs::ServerInputs;
use super::resources::Resources;
use crate::config::flags::{ReconcilerType, StorageBackend};

/// Builds the controller; `None` if the Endpoints are to be left alone, or, with a warning, if there is no address to
/// advertise. Only an etcd may have other servers beside this one.
pub(crate) fn api_endpoints(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
) -> Option<ApiEndpoints> {
    let flags = inputs.flags;
    if flags.cluster.endpoint_reconciler_type == ReconcilerType::None {
        return None;
    }
    let address = flags.serving.advertised_address();
    if address.is_none() {
        tracing::warn!("there is no address to advertise for the API; set --advertise-address");
    }
    let shared = flags.backend() == StorageBackend::Etcd3;
    let (stores, factory) = (&resources.stores, &resources.storages.factory);
    Some(ApiEndpoints {
        own: (address?, inputs.address.port()),
        cluster_ip: flags.services.service_cluster_ip_range.api_address(),
        services: stores.get("", "services").cloned()?,
        endpoints: stores.get("", "endpoints").cloned()?,
        slices: stores.get("discovery.k8s.io", "endpointslices").cloned()?,
        leases: shared.then(|| ServerLeases::new(factory.plain(SERVER_LEASES))),
        clock: inputs.clock.clone(),
    })
}
