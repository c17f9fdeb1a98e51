//! The paths that a relay answers itself: health, metrics, the live page, profiles and the log level.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method, Request, Response};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_endpoints::OwnPaths;
use ringwatch_endpoints::TextError;
use ringwatch_endpoints::health::Health;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_relay::Caches;

use crate::build::certificate_metrics::CertificateMetrics;
use crate::build::memory_metrics::MemoryMetrics;
use crate::build::metrics_text;
use crate::build::process_metrics::Process;
use crate::debug::{self, DebugPaths};

const METRICS: &str = "/metrics";
const SLIS: &str = "/metrics/slis";

/// Returns the paths besides those of health. What is below them is the relay's own too.
pub(super) fn paths() -> Vec<String> {
    let paths = [METRICS, SLIS].into_iter().chain(debug::ROOTS);
    paths.map(str::to_owned).collect()
}

/// The parts that answer these paths.
#[derive(Debug)]
pub(super) struct RelayPaths {
    pub(super) health: Health,
    pub(super) registry: Registry,
    /// The metrics of health checks, which are served apart.
    pub(super) slis: Registry,
    /// The metrics of the certificate, which are refreshed at each scrape, like the next three.
    pub(super) certificate: CertificateMetrics,
    pub(super) memory: MemoryMetrics,
    pub(super) process: Process,
    pub(super) age: UpstreamAge,
    /// The paths below `/debug`.
    pub(super) debug: DebugPaths,
}

/// The time for which the upstream has been away.
#[derive(Debug)]
pub(super) struct UpstreamAge {
    caches: Arc<Caches>,
    seconds: Gauge,
}

impl UpstreamAge {
    /// Registers the metric.
    pub(super) fn register(registry: &mut Registry, caches: &Arc<Caches>) -> Self {
        let seconds = Gauge::default();
        registry.register(
            "ringwatch_relay_upstream_away_seconds",
            "The time since the first of the filled caches that have no watch of the upstream has lost it; 0 if all have one.",
            seconds.clone(),
        );
        Self {
            caches: Arc::clone(caches),
            seconds,
        }
    }

    fn refresh(&self) {
        let seconds = self.caches.longest_away().as_secs();
        self.seconds.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }
}

#[async_trait]
impl OwnPaths for RelayPaths {
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        if path == METRICS {
            self.process.refresh();
            self.memory.refresh();
            self.certificate.refresh();
            self.age.refresh();
            return Some(metrics_text::answer(&self.registry, headers));
        }
        if path == SLIS {
            return Some(metrics_text::answer(&self.slis, headers));
        }
        if let Some(answer) = self.debug.answer(method, path, query, headers).await {
            return Some(answer);
        }
        if debug::is_own(path) {
            // These are about this process, and those of the upstream are asked for there.
            return Some(TextError::PageNotFound.response());
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
