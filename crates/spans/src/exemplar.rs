//! Histograms that name, for each bucket, the newest request in it whose spans are exported: an exemplar.
//!
//! As `exemplarHistogramMetric` of Kubernetes 1.36 (`component-base/metrics/histogram.go`), which also names requests
//! whose spans others export.

use std::fmt;
use std::time::SystemTime;

use opentelemetry::Context;
use opentelemetry::trace::{SpanId, TraceContextExt, TraceId};
use prometheus_client::encoding::{
    EncodeLabel, EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder,
};
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::Span;
use crate::span::{TracedRequest, system_time};

/// A histogram with exemplars. Clones share it.
#[derive(Clone, Debug)]
pub struct TracedHistogram(HistogramWithExemplars<Ids>);

/// The labels of an exemplar.
#[derive(Clone, Copy, Debug)]
struct Ids {
    trace: TraceId,
    span: SpanId,
}

impl TracedHistogram {
    /// Creates a histogram whose buckets have these upper bounds, and one more without a bound.
    pub fn new(buckets: impl IntoIterator<Item = f64>) -> Self {
        Self(HistogramWithExemplars::new(buckets.into_iter()))
    }

    /// Observes a value. It is the exemplar of its bucket if the current span is exported.
    pub fn observe(&self, value: f64) {
        self.add(value, Context::map_current(exemplar));
    }

    /// Observes a value as [`Self::observe`] does, with this span rather than the current one.
    pub fn observe_in(&self, span: &Span, value: f64) {
        self.add(value, span.context().and_then(exemplar));
    }

    fn add(&self, value: f64, exemplar: Option<(Ids, SystemTime)>) {
        let (ids, at) = exemplar.unzip();
        self.0.observe(value, ids, at);
    }
}

/// Returns the labels and the time of an exemplar, if the span of the context is exported.
fn exemplar(context: &Context) -> Option<(Ids, SystemTime)> {
    let traced = context.get::<TracedRequest>()?;
    let span = context.span();
    span.is_recording().then(|| {
        let ids = Ids {
            trace: span.span_context().trace_id(),
            span: span.span_context().span_id(),
        };
        (ids, system_time(traced.clock.wall()))
    })
}

impl EncodeMetric for TracedHistogram {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}

impl TypedMetric for TracedHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeLabelSet for Ids {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let Self { trace, span } = self;
        ("trace_id", trace.to_string()).encode(encoder.encode_label())?;
        ("span_id", span.to_string()).encode(encoder.encode_label())
    }
}
