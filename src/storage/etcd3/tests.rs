//! The store and the source of changes over the embedded store in memory. What must hold over every backend is tested
//! in `tests/it`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::storage::Versioner;
use crate::storage::backend::embedded::Embedded;
use crate::storage::backend::{Backend, Compare, Op, Txn};
use crate::storage::etcd3::Config;

mod changes;
mod dropped;
mod encrypted;
pub(super) mod etcd;
mod figures;
mod leases;
mod lists;
mod store;
mod watches;

fn backend() -> Arc<Embedded> {
    Arc::new(Embedded::in_memory(Clock::real()))
}

/// Returns the configuration of a store of config maps.
fn config() -> Config {
    Config::new("/registry", "/configmaps", Clock::real())
}

fn config_map(name: &str, app: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "d", "labels": {"app": app}}})
}

/// Creates a key past the store, and returns the revision.
async fn write(backend: &Embedded, key: &str, value: impl Into<Bytes>) -> u64 {
    let txn = Txn {
        compare: Compare::ModRevision(key.to_owned(), 0),
        then: Op::Put {
            key: key.to_owned(),
            value: value.into(),
            lease: None,
        },
        otherwise: None,
    };
    let written = backend.txn(txn).await.expect("a write");
    assert!(written.succeeded);
    written.revision
}

/// Returns the value of the only metric whose line begins so.
fn shown(registry: &Registry, start: &str) -> f64 {
    let mut text = String::new();
    encode(&mut text, registry).expect("text");
    let mut lines = text.lines().filter(|line| line.starts_with(start));
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no {start} in {text}"));
    assert_eq!(lines.next(), None, "more than one");
    let value = line.rsplit(' ').next().expect("a value");
    value.parse().expect("a number")
}
