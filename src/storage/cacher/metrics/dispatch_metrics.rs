//! The time that events take from the store through the cache to the watchers, under kube-apiserver's name.
//!
//! ```text
//!   a batch comes      it is in the window      its watchers are notified
//!        |--- storage_to_cache ---|------- cache_to_watcher -------|
//!        |------------------------- total -------------------------|
//! ```
//!
//! kube-apiserver measures every delivery to every watcher. Here a delivery pushes a number into a channel, which is
//! cheaper than reading the clock. So each batch, mostly of one event, is measured once for all its watchers.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::type_labels::TypeLabels;
use crate::clock::Instant;
use crate::sync::OnceLock;

/// The upper bounds of kube-apiserver's buckets, in seconds.
const BUCKETS_SECONDS: [f64; 13] = [
    0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// The names of the stages: the total, then its two parts.
const STAGES: [&str; 3] = ["total", "storage_to_cache", "cache_to_watcher"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    group: String,
    resource: String,
    stage: &'static str,
}

impl StageLabels {
    fn new(labels: &TypeLabels, stage: &'static str) -> Self {
        Self {
            group: labels.group.clone(),
            resource: labels.resource.clone(),
            stage,
        }
    }
}

/// The metric family of all types.
#[derive(Clone, Debug)]
pub(crate) struct DispatchMetrics(Family<StageLabels, Histogram, fn() -> Histogram>);

/// The metrics of one type.
#[derive(Clone, Debug)]
pub(crate) struct TypeDispatchMetrics {
    all: DispatchMetrics,
    labels: TypeLabels,
    /// The histograms by stage, created for the first event because most types never have one.
    stages: Arc<OnceLock<[Histogram; STAGES.len()]>>,
}

impl Default for DispatchMetrics {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| {
            Histogram::new(BUCKETS_SECONDS)
        }))
    }
}

impl DispatchMetrics {
    /// Registers the family for `/metrics`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_watch_events_dispatch_duration_seconds",
            "[ALPHA] Histogram of watch event dispatch latency broken by resource type and pipeline \
             stage. The 'total' stage is the end-to-end latency of a delivered event.",
            self.0.clone(),
        );
    }

    /// Returns the metrics of a type.
    pub(crate) fn of_type(&self, labels: &TypeLabels) -> TypeDispatchMetrics {
        TypeDispatchMetrics {
            all: self.clone(),
            labels: labels.clone(),
            stages: Arc::default(),
        }
    }

    /// Removes a type's metrics from `/metrics`.
    pub(crate) fn forget_type(&self, labels: &TypeLabels) {
        for stage in STAGES {
            self.0.remove(&StageLabels::new(labels, stage));
        }
    }
}

impl TypeDispatchMetrics {
    /// Observes a batch of events: when it came, when it was in the window, and when all its watchers were notified.
    pub(crate) fn observe(&self, came: Instant, published: Instant, notified: Instant) {
        let family = &self.all.0;
        let make = |stage| family.get_or_create_owned(&StageLabels::new(&self.labels, stage));
        let stages = self.stages.get_or_init(|| STAGES.map(make));
        let spans = [(came, notified), (came, published), (published, notified)];
        for (stage, (from, to)) in stages.iter().zip(spans) {
            stage.observe(to.saturating_duration_since(from).as_secs_f64());
        }
    }
}
