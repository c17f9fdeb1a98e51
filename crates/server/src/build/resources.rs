//! The built-in resources of a server, from their storages to their stores, with the authorizer and admission between.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_admission::webhooks::WebhookMetrics;
use ringwatch_admission::{AdmissionMetrics, Chain, MatchContext, ServedTypes};
use ringwatch_authorization::Authorizer;
use ringwatch_controllers::WorkQueueMetrics;
use ringwatch_controllers::aggregation::AvailabilityMetrics;
use ringwatch_observe::webhook_calls::WebhookCalls;
use ringwatch_plugins::PodSecurityMetrics;
use ringwatch_registry::Stores;
use ringwatch_resources::allocation::Repair;
use ringwatch_webhook::{NetworkClient, WebhookClient};

use super::admission::{
    Admission, AdmissionObjectSets, Evaluation, configured_plugins, own_plugins,
};
use super::storages::Storages;
use super::tasks::Tasks;
use super::write_guards::Guards;
use super::write_path::{WritePath, service_allocator};
use crate::config::admission_file::AdmissionConfig;
use crate::config::authorization_file::Authorizers;
use crate::config::flags::{ServeFlags, StorageBackend};

/// The built-in resources, and the parts that decide about writes.
pub(crate) struct Resources {
    /// The storages.
    pub(crate) storages: Storages,
    /// The stores, in the order of discovery.
    pub(crate) stores: Stores,
    /// The authorizer.
    pub(crate) authorizer: Arc<Authorizer>,
    /// The admission plugins.
    pub(crate) admission: Admission,
    /// Calls the webhooks of admission, authorization and conversion.
    pub(crate) webhooks: Arc<dyn WebhookClient>,
    /// The served types by which admission matches equivalent versions.
    pub(crate) types: Arc<ServedTypes>,
    /// Releases addresses and ports that no service has; `None` if they are not recorded.
    pub(crate) repair: Option<Arc<Repair>>,
    /// The calls of webhooks.
    pub(crate) webhook_calls: WebhookCalls,
    /// The metrics of aggregated APIs.
    pub(crate) availability: AvailabilityMetrics,
    /// The metrics of the controllers' queues.
    pub(crate) queues: WorkQueueMetrics,
}

/// The metrics of the built-in resources and of the controllers that follow them.
pub(crate) struct ResourceMetrics {
    pod_security: PodSecurityMetrics,
    admission: AdmissionMetrics,
    webhooks: WebhookMetrics,
    availability: AvailabilityMetrics,
    queues: WorkQueueMetrics,
}

impl ResourceMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            pod_security: PodSecurityMetrics::register(registry),
            admission: AdmissionMetrics::register(registry),
            webhooks: WebhookMetrics::register(registry),
            availability: AvailabilityMetrics::register(registry),
            queues: WorkQueueMetrics::register(registry),
        }
    }
}

impl Resources {
    /// Builds the authorizer, admission and the stores, in this order. The tasks configure the first two by a file and
    /// by stored objects.
    pub(crate) fn new(
        flags: &ServeFlags,
        storages: Storages,
        authorizers: Authorizers,
        admission: AdmissionConfig,
        metrics: ResourceMetrics,
        clock: &Clock,
    ) -> (Self, Tasks) {
        let mut tasks = Tasks::default();
        let webhook_calls = WebhookCalls::default();
        let services = storages.service_addresses();
        let webhooks = NetworkClient::new(Arc::new(services), webhook_calls.clone(), clock.clone());
        let webhooks: Arc<dyn WebhookClient> = Arc::new(webhooks);
        let (authorizer, file) = authorizers.build(&webhooks, clock);
        if let Some(file) = file {
            tasks.background("authorization configuration", file.follow());
        }
        let mut plugins = flags.admission.plugins();
        if authorizer.node_graph().is_some() {
            plugins = plugins.with_node_restriction();
        }
        let types = Arc::new(ServedTypes::new(storages.served.clone()));
        let objects = AdmissionObjectSets::new(clock);
        let evaluation = Evaluation {
            match_context: MatchContext {
                namespaces: storages.get_or_empty("namespaces"),
                types: Arc::clone(&types),
                authorizer: Arc::clone(&authorizer),
            },
            webhooks: &webhooks,
            metrics: metrics.webhooks,
        };
        let mut all = own_plugins(&storages, clock);
        all.extend(objects.plugins(&evaluation));
        all.extend(configured_plugins(
            &flags.admission,
            admission,
            &storages,
            metrics.pod_security,
        ));
        all.retain(|plugin| plugins.has(plugin.name()));
        let admission = Admission {
            chain: Arc::new(Chain::new(all).measured(metrics.admission)),
            objects,
        };
        let allocator = service_allocator(&storages, &flags.services);
        let write_path = WritePath {
            admission: Arc::clone(&admission.chain),
            guards: Guards::new(&storages, &types),
            allocator: allocator.clone(),
            deletion: flags.etcd.deletion_settings(),
            event_ttl: flags.etcd.event_ttl,
        };
        let stores = write_path.stores(&storages);
        for controller in admission.objects.controllers(&stores, clock) {
            tasks.background("objects of admission", controller);
        }
        let services = stores.get("", "services").cloned();
        let repair = allocator.zip(services).map(|(allocator, services)| Repair {
            allocator,
            services,
            request_timeout: flags.limits.request_timeout,
            is_alone: flags.backend() != StorageBackend::Etcd3,
            clock: clock.clone(),
        });
        let resources = Self {
            storages,
            stores,
            authorizer,
            admission,
            webhooks,
            types,
            repair: repair.map(Arc::new),
            webhook_calls,
            availability: metrics.availability,
            queues: metrics.queues,
        };
        (resources, tasks)
    }
}
