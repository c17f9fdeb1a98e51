//! The size of the store, as `/metrics` shows it under etcd's names.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::Embedded;

use super::backend::OpenBackend;

/// Maximum time that a scrape waits for the size of the store.
const SIZE_TIMEOUT: Duration = Duration::from_secs(2);

/// The size of the store, as `/metrics` shows it.
#[derive(Debug)]
pub(crate) struct StoreSize {
    backend: Arc<dyn Backend>,
    gauge: Gauge<i64, AtomicI64>,
    /// The embedded store, and the gauge of the bytes in use.
    used: Option<(Arc<Embedded>, Gauge<i64, AtomicI64>)>,
    clock: Clock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cluster {
    storage_cluster_id: &'static str,
}

impl StoreSize {
    /// Registers the metrics of the size; for the embedded store also its quota in bytes (-1 for none) and the bytes in
    /// use.
    pub(crate) fn register(
        registry: &mut Registry,
        backend: &OpenBackend,
        quota_bytes: Option<u64>,
        clock: Clock,
    ) -> Self {
        let family: Family<Cluster, Gauge<i64, AtomicI64>> = Family::default();
        registry.register(
            "apiserver_storage_size_bytes",
            "[STABLE] Size of the storage database file physically allocated in bytes.",
            family.clone(),
        );
        let gauge = family.get_or_create_owned(&Cluster {
            storage_cluster_id: "etcd-0",
        });
        let used = backend.embedded.as_ref().map(|embedded| {
            let quota = Gauge::<i64, AtomicI64>::default();
            quota.set(quota_bytes.map_or(-1, shown));
            registry.register(
                "etcd_server_quota_backend_bytes",
                "Current backend storage quota size in bytes.",
                quota,
            );
            let used = Gauge::default();
            registry.register(
                "etcd_mvcc_db_total_size_in_use_in_bytes",
                "Total size of the underlying database logically in use in bytes.",
                Gauge::clone(&used),
            );
            (Arc::clone(embedded), used)
        });
        Self {
            backend: Arc::clone(&backend.backend),
            gauge,
            used,
            clock,
        }
    }

    /// Asks the store for its size. The metric keeps its value if the store does not answer in time.
    pub(crate) async fn refresh(&self) {
        if let Some((embedded, used)) = &self.used {
            used.set(shown(embedded.used_bytes()));
        }
        let size = self.clock.timeout(SIZE_TIMEOUT, self.backend.size_bytes());
        match size.await {
            Ok(Ok(bytes)) => {
                self.gauge.set(shown(bytes));
            }
            Ok(Err(error)) => tracing::debug!(%error, "the store does not report its size"),
            Err(_) => tracing::debug!("the store did not report its size in time"),
        }
    }
}

fn shown(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
