//! Counts the stored objects of each resource once a minute, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::clock::Clock;
use crate::storage::Interface;

/// How often, as in kube-apiserver.
const INTERVAL_SECONDS: u64 = 60;

/// What is shown while the store does not tell.
const UNKNOWN: i64 = -1;

type Gauges<Labels> = Family<Labels, Gauge<i64, AtomicI64>>;

/// The numbers of objects, and their sizes.
#[derive(Clone, Debug, Default)]
pub struct ObjectCounts {
    /// How many there are, by a name that kube-apiserver is about to give up.
    stored: Gauges<Stored>,
    /// How many there are.
    objects: Gauges<Resource>,
    /// How many bytes they have together, roughly.
    bytes: Gauges<Resource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stored {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resource {
    group: String,
    resource: String,
}

impl ObjectCounts {
    /// Makes the numbers part of what `/metrics` shows.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let counts = Self::default();
        registry.register(
            "apiserver_storage_objects",
            "[STABLE] Number of stored objects at the time of last check split by kind. In case of a \
             fetching error, the value will be -1.",
            counts.stored.clone(),
        );
        registry.register(
            "apiserver_resource_objects",
            "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a \
             fetching error, the value will be -1.",
            counts.objects.clone(),
        );
        registry.register(
            "apiserver_resource_size_estimate_bytes",
            "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last \
             observed sizes of serialized objects. In case of a fetching error, the value will be \
             -1.",
            counts.bytes.clone(),
        );
        counts
    }

    /// How many bytes the objects of a resource have, and how many there are, as far as that is known.
    #[must_use]
    pub fn of(&self, group: &str, resource: &str) -> (u64, u64) {
        let labels = Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
        };
        let known = |gauges: &Gauges<Resource>| {
            let number = gauges.get(&labels).map_or(0, |gauge| gauge.get());
            u64::try_from(number).unwrap_or(0)
        };
        (known(&self.bytes), known(&self.objects))
    }

    /// Counts again and again. Never completes.
    pub async fn run(self, storages: BTreeMap<String, Arc<dyn Interface>>, clock: Clock) {
        loop {
            for (resource, storage) in &storages {
                self.count(resource, &**storage).await;
            }
            clock.sleep(Duration::from_secs(INTERVAL_SECONDS)).await;
        }
    }

    /// Counts the objects of a resource by its qualified name.
    async fn count(&self, qualified: &str, storage: &dyn Interface) {
        let (objects, bytes) = match storage.stats().await {
            Ok(stats) => {
                let each = stats.estimated_average_object_size_bytes;
                let bytes = stats.object_count.saturating_mul(each);
                (shown(stats.object_count), shown(bytes))
            }
            Err(error) => {
                tracing::debug!(%error, qualified, "cannot count objects");
                (UNKNOWN, UNKNOWN)
            }
        };
        let (resource, group) = qualified.split_once('.').unwrap_or((qualified, ""));
        let labels = Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
        };
        let stored = Stored {
            resource: qualified.to_owned(),
        };
        self.stored.get_or_create(&stored).set(objects);
        self.objects.get_or_create(&labels).set(objects);
        self.bytes.get_or_create(&labels).set(bytes);
    }
}

fn shown(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;
    use crate::storage::backend::embedded::Embedded;
    use crate::storage::{Versioner, etcd3};

    #[tokio::test]
    async fn objects_are_counted_and_weighed() {
        let clock = Clock::real();
        let config = etcd3::Config {
            path_prefix: "/registry".to_owned(),
            resource_prefix: "/deployments".to_owned(),
            versioner: Versioner::default(),
            clock: clock.clone(),
            compact_revision: None,
        };
        let store = etcd3::Store::new(Arc::new(Embedded::in_memory(clock)), config);
        let object = json!({"kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": "a", "namespace": "default"}});
        let created = store.create("/deployments/default/a", &object, None).await;
        let bytes = created.expect("created").stored().len();
        let mut registry = Registry::default();
        let counts = ObjectCounts::register(&mut registry);
        counts.count("deployments.apps", &store).await;
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let labels = "group=\"apps\",resource=\"deployments\"";
        for line in [
            "apiserver_storage_objects{resource=\"deployments.apps\"} 1\n".to_owned(),
            format!("apiserver_resource_objects{{{labels}}} 1\n"),
            format!("apiserver_resource_size_estimate_bytes{{{labels}}} {bytes}\n"),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
