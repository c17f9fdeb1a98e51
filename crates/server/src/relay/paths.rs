//! The paths that a relay answers itself: health and metrics.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Method, Response};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_apiserver::endpoints::ResponseBody;
use ringwatch_apiserver::filters::OwnPaths;
use ringwatch_apiserver::health::Health;
use ringwatch_relay::Caches;

use crate::debug_state::DebugState;
use crate::memory::MemoryMetrics;
use crate::metrics;
use crate::process::Process;

/// The paths besides those of health.
pub(super) const PATHS: [&str; 2] = ["/metrics", "/metrics/slis"];

/// The parts that answer these paths.
#[derive(Debug)]
pub(super) struct RelayPaths {
    pub(super) health: Health,
    pub(super) registry: Registry,
    /// The metrics of health checks, which are served apart.
    pub(super) slis: Registry,
    /// Those that are refreshed at each scrape.
    pub(super) memory: MemoryMetrics,
    pub(super) process: Process,
    pub(super) age: UpstreamAge,
    /// The paths that tell what the relay does now.
    pub(super) state: DebugState,
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
        _: &HeaderMap,
    ) -> Option<Response<ResponseBody>> {
        let [all, slis] = PATHS;
        if path == all {
            self.process.refresh();
            self.memory.refresh();
            self.age.refresh();
            return Some(metrics::answer(&self.registry));
        }
        if path == slis {
            return Some(metrics::answer(&self.slis));
        }
        if let Some(answer) = self.state.answer(method, path, query).await {
            return Some(answer);
        }
        self.health.answer(path, query).await
    }
}
