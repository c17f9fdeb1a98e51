//! What is there from the start.

mod default_roles;
mod flow_control;
mod role_reconciliation;
mod service_range;

use serde_json::{Value, json};

pub(super) use self::default_roles::node_rules;
pub use self::flow_control::{default_flows, ensure_flow_control};
pub use self::role_reconciliation::{RolesAndBindings, ensure_default_roles};
pub use self::service_range::ensure_service_range;
use super::resources::SYSTEM_PRIORITIES;
use super::{CreateOptions, Error, RequestContext, Store, User};
use crate::clock::Clock;
use crate::storage::GetOptions;

/// The namespaces of every cluster.
const SYSTEM_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// What the system's classes of priorities are for, in their order.
const SYSTEM_PRIORITY_WORDS: [&str; 2] = [
    "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    "Used for system critical pods that must not be moved from their current node.",
];

/// By what the controller that cleans up tokens in Secrets knows since when those that are used are noted.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// The first address of the services' range.
const KUBERNETES_SERVICE_ADDRESS: &str = "10.0.0.1";

/// Creates those of the system's namespaces that do not exist.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_system_namespaces(namespaces: &Store, clock: &Clock) -> Result<(), Error> {
    for name in SYSTEM_NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ensure(namespaces, "", namespace, clock).await?;
    }
    Ok(())
}

/// Creates those of the system's classes of priorities that do not exist.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_system_priorities(classes: &Store, clock: &Clock) -> Result<(), Error> {
    for ((name, value), what) in SYSTEM_PRIORITIES.iter().zip(SYSTEM_PRIORITY_WORDS) {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "description": what});
        ensure(classes, "", class, clock).await?;
    }
    Ok(())
}

/// Creates the service by which pods reach the API, unless it exists. The server listens on `port`.
///
/// # Errors
/// When it can neither be created nor is there.
pub async fn ensure_kubernetes_service(
    services: &Store,
    port: u16,
    clock: &Clock,
) -> Result<(), Error> {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": KUBERNETES_SERVICE_ADDRESS,
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]}});
    ensure(services, "default", service, clock).await
}

/// Notes since when it has been known which tokens in Secrets are used, unless it is noted. Here none is.
///
/// # Errors
/// When it can neither be written nor is there.
pub async fn ensure_token_tracking(config_maps: &Store, clock: &Clock) -> Result<(), Error> {
    let today = clock.wall().strftime("%Y-%m-%d").to_string();
    let tracking = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": TOKEN_TRACKING, "namespace": "kube-system"},
        "data": {"since": today}});
    ensure(config_maps, "kube-system", tracking, clock).await
}

/// Creates an object unless it exists. That is asked first, since an attempt would find the address
/// of its predecessor taken.
pub(super) async fn ensure(
    store: &Store,
    namespace: &str,
    object: Value,
    clock: &Clock,
) -> Result<(), Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match store.get(namespace, name, GetOptions::default()).await {
        Err(Error::NotFound { .. }) => {}
        found => return found.map(|_| ()),
    }
    let options = CreateOptions::default();
    match store
        .create(&own_context(clock), namespace, object, &options)
        .await
    {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The server itself writes.
fn own_context(clock: &Clock) -> RequestContext {
    RequestContext::new(User::default(), "kube-apiserver".to_owned(), clock.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::codec;
    use crate::registry::resources;
    use crate::registry::testing::{MemoryStorage, context};
    use crate::storage::ListOptions;

    #[tokio::test]
    async fn the_systems_namespaces_are_there_and_stay_as_they_are() {
        let storage = MemoryStorage::new("/namespaces");
        let resources = resources::built_in();
        let namespaces = resources.into_iter().find(|it| it.plural == "namespaces");
        let store = Store::new(namespaces.expect("built in"), Arc::clone(&storage) as _);
        let clock = context().clock;
        ensure_system_namespaces(&store, &clock)
            .await
            .expect("created");
        ensure_system_namespaces(&store, &clock)
            .await
            .expect("there");
        let list = store
            .list("", ListOptions::default())
            .await
            .expect("a list");
        let names: Vec<_> = list
            .items
            .iter()
            .map(|namespace| namespace.name())
            .collect();
        assert_eq!(
            names,
            ["default", "kube-node-lease", "kube-public", "kube-system"]
        );
        assert_eq!(storage.revision().await, 5);
        let value = codec::tree(&list.items[0]).expect("an object");
        assert_eq!(value["status"]["phase"], "Active");
        assert_eq!(value["spec"]["finalizers"], json!(["kubernetes"]));
    }
}
