//! Objects that the server creates at its start: system namespaces, priority classes, default roles, flow control
//! configuration, the service `kubernetes`.

pub(crate) mod flow_control;
pub(crate) mod role_reconciliation;
pub(crate) mod service_range;

use std::net::IpAddr;

use serde_json::{Value, json};

pub use self::flow_control::{default_flows, ensure_flow_control};
pub use self::role_reconciliation::{RolesAndBindings, ensure_default_roles};
pub use self::service_range::ensure_service_range;
use ringwatch::clock::Clock;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::{CreateOptions, RequestContext, Store};

use super::scheduling::SYSTEM_PRIORITIES;

/// Namespaces that every cluster has.
const SYSTEM_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Descriptions of the system's PriorityClasses, in the order of [`SYSTEM_PRIORITIES`].
const SYSTEM_PRIORITY_WORDS: [&str; 2] = [
    "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    "Used for system critical pods that must not be moved from their current node.",
];

/// Name of the ConfigMap that tells the legacy service account token cleaner since when uses of tokens are tracked.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Creates the system namespaces that do not exist.
///
/// # Errors
/// An error of the store if one cannot be read or created; those before it exist.
pub async fn ensure_system_namespaces(namespaces: &Store, clock: &Clock) -> Result<(), Error> {
    for name in SYSTEM_NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ensure(namespaces, "", namespace, clock).await?;
    }
    Ok(())
}

/// Creates the system's PriorityClasses that do not exist.
///
/// # Errors
/// An error of the store if one cannot be read or created; those before it exist.
pub async fn ensure_system_priorities(classes: &Store, clock: &Clock) -> Result<(), Error> {
    for ((name, value), what) in SYSTEM_PRIORITIES.iter().zip(SYSTEM_PRIORITY_WORDS) {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "description": what});
        ensure(classes, "", class, clock).await?;
    }
    Ok(())
}

/// Creates the service by which pods reach the API, unless it exists. It has this cluster IP; the server listens on
/// `port`.
///
/// # Errors
/// An error of the store if it cannot be read or created.
pub async fn ensure_kubernetes_service(
    services: &Store,
    cluster_ip: IpAddr,
    port: u16,
    clock: &Clock,
) -> Result<(), Error> {
    let cluster_ip = cluster_ip.to_string();
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": cluster_ip,
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]}});
    ensure(services, "default", service, clock).await
}

/// Creates the ConfigMap with the date since which uses of tokens in Secrets are tracked, unless it exists.
///
/// # Errors
/// An error of the store if it cannot be read or created.
pub async fn ensure_token_tracking(config_maps: &Store, clock: &Clock) -> Result<(), Error> {
    let today = clock.wall().strftime("%Y-%m-%d").to_string();
    let tracking = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": TOKEN_TRACKING, "namespace": "kube-system"},
        "data": {"since": today}});
    ensure(config_maps, "kube-system", tracking, clock).await
}

/// Creates an object unless it exists. The object is looked up first, since an attempt to create a service again would
/// fail on the cluster IP, which the existing one holds.
pub async fn ensure(
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
        .create(
            &RequestContext::of_server(clock),
            namespace,
            object,
            &options,
        )
        .await
    {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringwatch::codec;
    use ringwatch::storage::ListOptions;
    use ringwatch_registry::testing::{MemoryStorage, context};

    use super::*;

    #[tokio::test]
    async fn the_systems_namespaces_are_there_and_stay_as_they_are() {
        let storage = MemoryStorage::new("/namespaces");
        let resources = crate::built_in();
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
