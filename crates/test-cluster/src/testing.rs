//! A definition that the tests of several controllers share.

use std::sync::Arc;

use ringwatch::storage::{DeleteOptions, Interface, NoCheck};
use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::testing::{MemoryStorage, TestStrategy, resource};
use ringwatch_registry::{Resource, Store};
use serde_json::json;

const PLURAL: &str = "customresourcedefinitions";

/// The definition of Gears, which is accepted, and of which nothing is served yet.
pub(crate) struct UnservedDefinition {
    /// The store of definitions.
    pub(crate) store: Arc<Store>,
    storage: Arc<MemoryStorage>,
}

impl UnservedDefinition {
    pub(crate) async fn new() -> Self {
        let strategy = Arc::new(TestStrategy::default());
        let resource = resource(PLURAL, "CustomResourceDefinition", false, strategy);
        let resource = Resource {
            group_version: GroupVersion::new("apiextensions.k8s.io", "v1"),
            ..Resource::clone(&resource)
        };
        let storage = MemoryStorage::new(&format!("/{PLURAL}"));
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gears.example.com"},
            "spec": {"versions": [{"name": "v1", "served": true}]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        let created = storage.create(&Self::key(), &definition, None).await;
        created.expect("a definition");
        Self {
            store: Arc::new(Store::new(Arc::new(resource), Arc::clone(&storage) as _)),
            storage,
        }
    }

    pub(crate) async fn remove(&self) {
        let (key, options) = (Self::key(), DeleteOptions::default());
        let removed = self.storage.delete(&key, options, &mut NoCheck).await;
        removed.expect("it was there");
    }

    fn key() -> String {
        format!("/{PLURAL}/gears.example.com")
    }
}
