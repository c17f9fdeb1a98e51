//! The APIs that stored objects define: custom resources, and those of aggregated servers.

use std::sync::Arc;

use ringwatch::storage::cacher::Reflector;
use ringwatch_controllers::aggregation::{Aggregation, ProxyTls};
use ringwatch_controllers::api_services::ApiServices;
use ringwatch_controllers::custom_resources::CustomResources;
use ringwatch_controllers::custom_resources::joined_types::{JoinedTypes, join_stored};
use ringwatch_endpoints::Api;
use ringwatch_registry::Store;
use tokio::sync::{oneshot, watch};

use super::inputs::ServerInputs;
use super::post_start_hooks::PostStartHooks;
use super::resources::Resources;
use super::storages::Storages;
use super::tasks::Tasks;

/// The group and plural of the resource that defines custom resources.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The group and plural of the resource that lists all APIs.
const API_SERVICES: (&str, &str) = ("apiregistration.k8s.io", "apiservices");

/// Returns the receiver of the types of stored CustomResourceDefinitions. The task has them join the feed before it
/// runs the reflector, which fills the caches of all types.
pub(crate) fn fill_caches(
    storages: &Storages,
    reflector: Reflector,
) -> (oneshot::Receiver<JoinedTypes>, Tasks) {
    let (sender, joined_types) = oneshot::channel();
    let (group, plural) = DEFINITIONS;
    let definitions = storages.bare_store(&format!("{plural}.{group}"));
    let (factory, feed) = (Arc::clone(&storages.factory), storages.feed.clone());
    let mut tasks = Tasks::default();
    tasks.serving_to_its_end("reflector", async move |end| {
        if let Some(definitions) = definitions {
            let joining = join_stored(&factory, &feed, &definitions);
            if let Some(joined) = end.run_until_cancelled(joining).await {
                // The controller that waits for them may have ended.
                let _ = sender.send(joined);
            }
        }
        reflector.run(end.cancelled_owned()).await;
    });
    (joined_types, tasks)
}

/// Returns the receiver of the stores of custom resources as they come and go, and the tasks that serve these and
/// publish their APIServices.
pub(crate) fn custom_resources(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    joined_types: oneshot::Receiver<JoinedTypes>,
    api: &Arc<Api>,
    hooks: &PostStartHooks,
) -> (watch::Receiver<Vec<Arc<Store>>>, Tasks) {
    let mut tasks = Tasks::default();
    let (stores, served_stores) = watch::channel(Vec::new());
    let (group, plural) = DEFINITIONS;
    let Some(definitions) = resources.stores.get(group, plural) else {
        return (served_stores, tasks);
    };
    let (custom_apis, served_apis) = watch::channel(None);
    let custom = CustomResources {
        definitions: Arc::clone(definitions),
        factory: Arc::clone(&resources.storages.factory),
        joined_types,
        feed: resources.storages.feed.clone(),
        admission: Arc::clone(&resources.admission.chain) as _,
        deletion: inputs.flags.etcd.deletion_settings(),
        webhooks: Arc::clone(&resources.webhooks),
        types: Arc::clone(&resources.types),
        api: Arc::clone(api),
        custom_apis,
        stores,
        synced: hooks.definitions_synced.clone(),
        queues: resources.queues.clone(),
        clock: inputs.clock.clone(),
    };
    tasks.background("custom resources", custom.run());
    let (group, plural) = API_SERVICES;
    if let Some(store) = resources.stores.get(group, plural) {
        let services = ApiServices {
            store: Arc::clone(store),
            custom: served_apis,
            synced: hooks.custom_apis_published.clone(),
            clock: inputs.clock.clone(),
        };
        tasks.background("APIServices", services.run());
    }
    (served_stores, tasks)
}

/// Returns the task that proxies the APIs of other servers.
pub(crate) fn aggregated_apis(
    inputs: &ServerInputs<'_>,
    resources: &Resources,
    tls: ProxyTls,
    api: &Arc<Api>,
    hooks: &PostStartHooks,
) -> Tasks {
    let mut tasks = Tasks::default();
    let (synced, clock) = (hooks.aggregation_synced.clone(), inputs.clock.clone());
    let aggregation = Aggregation::new(&resources.stores, tls, api, synced, clock);
    if let Some(aggregation) = aggregation {
        let rejects = inputs
            .flags
            .aggregation
            .aggregator_reject_forwarding_redirect;
        let (metrics, queues) = (resources.availability.clone(), resources.queues.clone());
        let aggregation = aggregation.passing_redirects(!rejects);
        let aggregation = aggregation.measured(metrics, queues);
        tasks.background("aggregated APIs", aggregation.run());
    }
    tasks
}
