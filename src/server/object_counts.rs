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

/// The numbers of objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectCounts(Family<Stored, Gauge<i64, AtomicI64>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stored {
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
            counts.0.clone(),
        );
        counts
    }

    /// Counts again and again. Never completes.
    pub async fn run(self, storages: BTreeMap<String, Arc<dyn Interface>>, clock: Clock) {
        loop {
            for (resource, storage) in &storages {
                let count = match storage.stats().await {
                    Ok(stats) => i64::try_from(stats.object_count).unwrap_or(i64::MAX),
                    Err(error) => {
                        tracing::debug!(%error, resource, "cannot count objects");
                        -1
                    }
                };
                let resource = resource.clone();
                self.0.get_or_create_owned(&Stored { resource }).set(count);
            }
            clock.sleep(Duration::from_secs(INTERVAL_SECONDS)).await;
        }
    }
}
