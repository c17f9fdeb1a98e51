//! The paths that the server answers itself: health, metrics, status and flags, the live page, profiles, the log level,
//! the keys of service accounts, and snapshots of the embedded store.

use async_trait::async_trait;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_authentication::service_accounts::{CONFIGURATION_PATH, KEYS_PATH, KeyDiscovery};
use ringwatch_endpoints::OwnPaths;
use ringwatch_endpoints::health::Health;
use ringwatch_endpoints::zpages::{FLAGZ, STATUSZ, Zpages};
use ringwatch_http::{RequestBody, ResponseBody, full};

use super::certificate_metrics::CertificateMetrics;
use super::memory_metrics::MemoryMetrics;
use super::metrics_text;
use super::process_metrics::Process;
use super::store_size::StoreSize;
use super::store_snapshot::{SNAPSHOT, StoreSnapshots};
use crate::debug::DebugPaths;

/// The paths besides those of health and keys, and those below `/debug`, which are not listed, as in kube-apiserver.
const PATHS: [&str; 4] = ["/metrics", SLIS, STATUSZ, FLAGZ];

/// The path of the metrics of health checks.
const SLIS: &str = "/metrics/slis";

/// The parts that answer these paths.
#[derive(Debug)]
pub(crate) struct ServerPaths {
    /// The checks of `/healthz`, `/livez` and `/readyz`.
    pub(crate) health: Health,
    /// The documents about the keys of service account tokens; `None` if they are not published.
    pub(crate) keys: Option<KeyDiscovery>,
    /// The metrics.
    pub(crate) registry: Registry,
    /// The metrics of health checks, which are served apart.
    pub(crate) slis: Registry,
    /// The metrics of the server's certificates, which are refreshed at each scrape, like the next three.
    pub(crate) certificate: CertificateMetrics,
    /// The metrics of the memory budget.
    pub(crate) memory: MemoryMetrics,
    /// The metrics of the process.
    pub(crate) process: Process,
    /// The size of the store.
    pub(crate) size: StoreSize,
    /// Snapshots of the store; `None` if it is not embedded.
    pub(crate) snapshots: Option<StoreSnapshots>,
    /// The paths below `/debug`.
    pub(crate) debug: DebugPaths,
    /// The pages `/statusz` and `/flagz`.
    pub(crate) zpages: Zpages,
    /// The clock of the server.
    pub(crate) clock: Clock,
}

impl ServerPaths {
    /// Returns all paths, for the list at `/`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = self.health.paths();
        paths.extend(PATHS.map(String::from));
        if self.keys.is_some() {
            paths.extend([CONFIGURATION_PATH, KEYS_PATH].map(String::from));
        }
        if self.snapshots.is_some() {
            paths.push(SNAPSHOT.to_owned());
        }
        paths
    }
}

/// Returns the metrics of health checks, with the time at which the process started.
pub(crate) fn slis(health: &Health, started: Timestamp) -> Registry {
    let mut registry = Registry::default();
    health.register(&mut registry);
    let seconds: Gauge = Gauge::default();
    seconds.set(started.as_second());
    registry.register(
        "process_start_time_seconds",
        "[ALPHA] Start time of the process since unix epoch in seconds.",
        seconds,
    );
    registry
}

/// Returns an answer with a document that others may keep for an hour, as in kube-apiserver.
fn document(media_type: &'static str, content: &str) -> Response<ResponseBody> {
    let mut response = Response::new(full(content.to_owned()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let an_hour = HeaderValue::from_static("public, max-age=3600");
    headers.insert(CACHE_CONTROL, an_hour);
    response
}

#[async_trait]
impl OwnPaths for ServerPaths {
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        if matches!(path, STATUSZ | FLAGZ) {
            return self.zpages.answer(path, headers, self.clock.wall());
        }
        if let Some(answer) = self.debug.answer(method, path, query, headers).await {
            return Some(answer);
        }
        if path == "/metrics" {
            self.process.refresh();
            self.memory.refresh();
            self.certificate.refresh();
            self.size.refresh().await;
            return Some(metrics_text::answer(&self.registry, headers));
        }
        if path == SLIS {
            return Some(metrics_text::answer(&self.slis, headers));
        }
        // Who may read it, by RBAC, is said of `get` alone.
        if let Some(snapshots) = &self.snapshots
            && path == SNAPSHOT
            && method == Method::GET
        {
            return Some(snapshots.answer());
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

    async fn put(
        &self,
        request: Request<RequestBody>,
        path: &str,
    ) -> Result<Response<ResponseBody>, Request<RequestBody>> {
        self.debug.put(request, path).await
    }
}
