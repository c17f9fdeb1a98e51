//! The metrics of large work.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ringwatch_offload::Work;

#[derive(Clone, Debug)]
pub(super) struct LargeWorkMetrics {
    pub(super) waits: Family<LargeWorkLabels, Histogram, fn() -> Histogram>,
    pub(super) runs: Family<LargeWorkLabels, Histogram, fn() -> Histogram>,
    pub(super) requests: Gauge<i64, AtomicI64>,
    pub(super) refused: Family<LargeWorkLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LargeWorkLabels {
    work: &'static str,
}

impl LargeWorkLabels {
    pub(super) fn new(work: Work) -> Self {
        let work = match work {
            Work::Body | Work::ProtobufBody => "body",
            Work::Object => "object",
            Work::Expressions => "expressions",
            Work::Permissions => "permissions",
        };
        Self { work }
    }
}

impl LargeWorkMetrics {
    pub(super) fn new() -> Self {
        Self {
            waits: Family::new_with_constructor(buckets),
            runs: Family::new_with_constructor(buckets),
            requests: Gauge::default(),
            refused: Family::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "ringwatch_large_work_wait_seconds",
            "Time from when a request asked to leave its worker until a thread for large work took it",
            self.waits.clone(),
        );
        registry.register(
            "ringwatch_large_work_run_seconds",
            "Time for which a request kept a thread for large work busy",
            self.runs.clone(),
        );
        registry.register(
            "ringwatch_large_work_requests",
            "Requests with large work that run or wait for a thread",
            self.requests.clone(),
        );
        registry.register(
            "ringwatch_large_work_refused",
            "Requests that were answered 429 because too many others had large work",
            self.refused.clone(),
        );
    }
}

fn buckets() -> Histogram {
    Histogram::new([0.000_1, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0])
}
