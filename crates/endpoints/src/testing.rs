//! Helpers of the tests of several modules: a store and its objects.

use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch::meta::{FieldSchema, Object};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::{Interface, etcd3};
use ringwatch_registry::Store;
use ringwatch_tls::tls_client::{Trust, config};
use serde_json::json;

use super::forward::{KubeletTls, Kubelets};

/// Returns the store of ConfigMaps, which has none.
pub(super) fn config_maps(clock: &Clock) -> Arc<Store> {
    let storage = etcd3::Store::new(
        Arc::new(Embedded::in_memory(clock.clone())),
        etcd3::Config::new("/registry", "/configmaps", clock.clone()),
    );
    config_maps_in(Arc::new(storage))
}

/// Returns the store of the ConfigMaps in a storage.
pub(super) fn config_maps_in(storage: Arc<dyn Interface>) -> Arc<Store> {
    let built_in = ringwatch_resources::built_in();
    let resource = built_in.iter().find(|it| it.plural == "configmaps");
    let resource = Arc::clone(resource.expect("a resource"));
    Arc::new(Store::new(resource, storage))
}

/// Returns settings for requests that reach no kubelet.
pub(super) fn kubelets() -> Kubelets {
    let tls = config(Trust::Anyone, None).expect("a configuration");
    Kubelets {
        tls: KubeletTls {
            trusted: Arc::clone(&tls),
            unverified: Arc::clone(&tls),
            proxied: tls,
        },
        address_types: Vec::new(),
        default_port: 0,
        connect_timeout: Duration::ZERO,
        bytes_per_second: None,
    }
}

/// Returns a ConfigMap of so many bytes more than the least.
pub(super) fn config_map(revision: u64, more_bytes: usize) -> Arc<Object> {
    let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"},
        "data": {"k": "x".repeat(more_bytes)}});
    let object = Object::from_value(&value, revision, &FieldSchema::default());
    Arc::new(object.expect("an object"))
}
