//! Helpers of the tests of several modules: a store and its objects.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::meta::{FieldSchema, Object};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::{Versioner, etcd3};
use ringwatch_registry::Store;
use serde_json::json;

/// Returns the store of ConfigMaps, which has none.
pub(super) fn config_maps(clock: &Clock) -> Arc<Store> {
    let built_in = ringwatch_resources::built_in();
    let resource = built_in.iter().find(|it| it.plural == "configmaps");
    let storage = etcd3::Store::new(
        Arc::new(Embedded::in_memory(clock.clone())),
        etcd3::Config {
            path_prefix: "/registry".to_owned(),
            resource_prefix: "/configmaps".to_owned(),
            versioner: Versioner::default(),
            clock: clock.clone(),
            compact_revision: None,
        },
    );
    let resource = Arc::clone(resource.expect("a resource"));
    Arc::new(Store::new(resource, Arc::new(storage)))
}

/// Returns a ConfigMap of so many bytes more than the least.
pub(super) fn config_map(revision: u64, more_bytes: usize) -> Arc<Object> {
    let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"},
        "data": {"k": "x".repeat(more_bytes)}});
    let object = Object::from_value(&value, revision, &FieldSchema::default());
    Arc::new(object.expect("an object"))
}
