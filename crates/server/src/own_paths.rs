//! The paths that the server answers itself: health, metrics and the keys of service accounts.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch_apiserver::endpoints::{ResponseBody, full};
use ringwatch_apiserver::filters::OwnPaths;
use ringwatch_apiserver::health::Health;
use ringwatch_authentication::service_accounts::{CONFIGURATION_PATH, KEYS_PATH, KeyDiscovery};

use super::memory::MemoryMetrics;
use super::metrics;
use super::process::Process;

/// A scrape waits this long for the store to tell its size.
const SIZE_SECONDS_MAX: u64 = 2;

/// Health, metrics and keys.
#[derive(Debug)]
pub struct HealthAndMetrics {
    /// The checks.
    pub health: Health,
    /// The documents about the keys of service account tokens.
    pub keys: Option<KeyDiscovery>,
    /// The families.
    pub registry: Registry,
    /// The metrics of the memory budget.
    pub memory: MemoryMetrics,
    /// The process's numbers.
    pub process: Process,
    /// The size of the store.
    pub size: StoreSize,
}

/// The size of the store, as `/metrics` shows it.
#[derive(Debug)]
pub struct StoreSize {
    backend: Arc<dyn Backend>,
    gauge: Gauge<i64, AtomicI64>,
    /// The embedded store, and how much of its size it needs.
    used: Option<(Arc<Embedded>, Gauge<i64, AtomicI64>)>,
    clock: Clock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cluster {
    storage_cluster_id: &'static str,
}

impl StoreSize {
    /// Makes the size part of what `/metrics` shows, and what the quota limits of the embedded store.
    #[must_use]
    pub fn register(
        registry: &mut Registry,
        backend: Arc<dyn Backend>,
        limited: Option<(Arc<Embedded>, Option<u64>)>,
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
        let used = limited.map(|(embedded, quota_bytes)| {
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
            (embedded, used)
        });
        Self {
            backend,
            gauge,
            used,
            clock,
        }
    }

    /// Asks the store. If it does not tell in time the number stays.
    async fn refresh(&self) {
        if let Some((embedded, used)) = &self.used {
            used.set(shown(embedded.used_bytes()));
        }
        let at_most = Duration::from_secs(SIZE_SECONDS_MAX);
        let size = self.clock.timeout(at_most, self.backend.size_bytes());
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

impl HealthAndMetrics {
    /// All paths, for the list at `/`.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = self.health.paths();
        paths.push("/metrics".to_owned());
        if self.keys.is_some() {
            paths.extend([CONFIGURATION_PATH, KEYS_PATH].map(String::from));
        }
        paths
    }
}

/// A document that others may keep for an hour, as in kube-apiserver.
fn document(media_type: &'static str, content: &str) -> Response<ResponseBody> {
    let mut response = Response::new(full(content.to_owned()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let an_hour = HeaderValue::from_static("public, max-age=3600");
    headers.insert(CACHE_CONTROL, an_hour);
    response
}

#[async_trait]
impl OwnPaths for HealthAndMetrics {
    async fn answer(&self, path: &str, query: &str) -> Option<Response<ResponseBody>> {
        if path == "/metrics" {
            self.process.refresh();
            self.memory.refresh();
            self.size.refresh().await;
            return Some(metrics::answer(&self.registry));
        }
        if let Some(keys) = &self.keys {
            // Clients made from older schemas end paths with a slash.
            match path.strip_suffix('/').unwrap_or(path) {
                CONFIGURATION_PATH => {
                    return Some(document("application/json", &keys.configuration));
                }
                KEYS_PATH => return Some(document("application/jwk-set+json", &keys.keys)),
                _ => {}
            }
        }
        self.health.answer(path, query).await
    }
}
