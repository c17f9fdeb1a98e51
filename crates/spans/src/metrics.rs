//! The numbers of spans that were exported and dropped.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counts spans by their fate.
#[derive(Clone, Debug, Default)]
pub struct SpanMetrics {
    exported: Counter,
    dropped: Family<Reason, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

impl SpanMetrics {
    /// Registers the families.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for reason in ["queue_full", "export_failed"] {
            let _ = metrics.dropped.get_or_create(&Reason { reason });
        }
        registry.register(
            "ringwatch_tracing_exported_spans",
            "Spans that the collector has taken",
            metrics.exported.clone(),
        );
        registry.register(
            "ringwatch_tracing_dropped_spans",
            "Spans that were dropped: the queue was full, or the collector did not take them in time",
            metrics.dropped.clone(),
        );
        metrics
    }

    pub(crate) fn exported(&self, spans: u64) {
        self.exported.inc_by(spans);
    }

    pub(crate) fn queue_was_full(&self) {
        self.dropped("queue_full", 1);
    }

    pub(crate) fn export_failed(&self, spans: u64) {
        self.dropped("export_failed", spans);
    }

    fn dropped(&self, reason: &'static str, spans: u64) {
        let counter = self.dropped.get_or_create_owned(&Reason { reason });
        counter.inc_by(spans);
    }
}
