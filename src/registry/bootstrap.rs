//! What is there from the start.

use serde_json::json;

use super::{CreateOptions, Error, RequestContext, Store, User};
use crate::clock::Clock;

/// The namespaces of every cluster.
const SYSTEM_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates those of the system's namespaces that do not exist.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_system_namespaces(namespaces: &Store, clock: &Clock) -> Result<(), Error> {
    let context = RequestContext::new(User::default(), "kube-apiserver".to_owned(), clock.clone());
    for name in SYSTEM_NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let created = namespaces
            .create(&context, "", namespace, &CreateOptions::default())
            .await;
        match created {
            Ok(_) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::registry::resources;
    use crate::registry::testing::{MemoryStorage, context};
    use crate::storage::ListOptions;

    #[tokio::test]
    async fn the_systems_namespaces_are_there_and_stay_as_they_are() {
        let storage = MemoryStorage::new("/namespaces");
        let resources = resources::built_in();
        let namespaces = resources.into_iter().find(|it| it.plural == "namespaces");
        let store = Store::new(
            namespaces.expect("built in"),
            Arc::clone(&storage) as _,
            None,
        );
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
        let value = list.items[0].to_value().expect("an object");
        assert_eq!(value["status"]["phase"], "Active");
        assert_eq!(value["spec"]["finalizers"], json!(["kubernetes"]));
    }
}
