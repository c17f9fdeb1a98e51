//! What is there from the start.

mod default_roles;
mod flow_control;
mod role_reconciliation;

use serde_json::{Value, json};

pub(super) use self::default_roles::node_rules;
pub use self::flow_control::{default_flows, ensure_flow_control};
pub use self::role_reconciliation::{RolesAndBindings, ensure_default_roles};
use super::resources::SYSTEM_PRIORITIES;
use super::{CreateOptions, Error, RequestContext, Store, User};
use crate::clock::Clock;
use crate::codec;
use crate::storage::{GetOptions, ListOptions};

/// The namespaces of every cluster.
const SYSTEM_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// What the system's classes of priorities are for, in their order.
const SYSTEM_PRIORITY_WORDS: [&str; 2] = [
    "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    "Used for system critical pods that must not be moved from their current node.",
];

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
    let context = RequestContext::new(User::default(), "kube-apiserver".to_owned(), clock.clone());
    let options = CreateOptions::default();
    match store.create(&context, namespace, object, &options).await {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// How many objects are read at a time. Pages come from the store while a cache is being filled.
const HELD_PAGE_OBJECTS: u64 = 500;

/// Shows the strategy of a store what is stored there, so that it knows what objects hold that
/// were stored before this process began: the addresses of services. Until then addresses may be
/// given twice, so do this before serving writes.
///
/// # Errors
/// When the store cannot be listed.
pub async fn hold_what_is_stored(store: &Store) -> Result<(), Error> {
    let mut options = ListOptions::default();
    options.predicate.limit = HELD_PAGE_OBJECTS;
    loop {
        let list = store.list("", options.clone()).await?;
        for object in &list.items {
            let value = codec::tree(object).map_err(|error| Error::Internal(error.to_string()))?;
            store.resource().strategy.hold(&value);
        }
        match list.continue_token {
            Some(token) => options.predicate.continue_token = token,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::registry::resources;
    use crate::registry::testing::{MemoryStorage, context};

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

    #[tokio::test]
    async fn what_services_have_is_not_given_again() {
        let storage = MemoryStorage::new("/services/specs");
        let service = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": "a"},
                "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}})
        };
        let options = CreateOptions::default();
        // Every process begins with resources of its own.
        let store = || {
            let services = resources::built_in()
                .into_iter()
                .find(|it| it.plural == "services");
            Store::new(services.expect("built in"), Arc::clone(&storage) as _)
        };
        store()
            .create(&context(), "a", service("one"), &options)
            .await
            .expect("created");
        let later = store();
        hold_what_is_stored(&later).await.expect("held");
        let refused = later
            .create(&context(), "a", service("two"), &options)
            .await;
        let message = refused.expect_err("taken").to_string();
        assert!(
            message.contains("provided IP is already allocated"),
            "{message}"
        );
    }
}
