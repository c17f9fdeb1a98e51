//! The start of a trace: the span of a request, and the decision if it is sampled.

use http::HeaderMap;
use jiff::Timestamp;
use opentelemetry::Context;
use opentelemetry::trace::{
    Link, SpanContext, SpanKind, TraceContextExt, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use ringwatch::clock::Clock;

use crate::attribute::{self, Attribute};
use crate::headers::extract;
use crate::metrics::SpanMetrics;
use crate::queue::queue;
use crate::span::{Span, TracedRequest, system_time};
use crate::{Endpoint, Exporter};

/// The scope of all spans.
const SCOPE: &str = "ringwatch";

/// The share of requests whose spans are exported, among those whose caller has not decided it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// The number among a million.
    pub per_million: u32,
}

impl Sampling {
    /// Returns the sampler: the caller's decision is kept.
    fn sampler(self) -> Sampler {
        let root = match self.per_million {
            0 => Sampler::AlwaysOff,
            some => Sampler::TraceIdRatioBased(f64::from(some) / 1e6),
        };
        Sampler::ParentBased(Box::new(root))
    }
}

/// Starts the spans of requests.
#[derive(Clone, Debug)]
pub struct Tracer {
    spans: SdkTracer,
    clock: Clock,
}

/// A request that has come.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The headers, which may name the caller's span.
    pub headers: &'a HeaderMap,
    /// True if the caller may decide about sampling, and its span becomes the parent. Else there is a link to it.
    pub is_trusted: bool,
    /// The time at which it came.
    pub since: Timestamp,
    /// The audit id.
    pub audit_id: &'a str,
}

impl Tracer {
    /// Creates a tracer, and the exporter of its spans to a collector. `instance` names this server among others.
    #[must_use]
    pub fn new(
        sampling: Sampling,
        endpoint: &Endpoint,
        instance: String,
        metrics: SpanMetrics,
        clock: Clock,
    ) -> (Self, Exporter) {
        let (queue, ended) = queue(metrics.clone());
        let provider = SdkTracerProvider::builder()
            .with_sampler(sampling.sampler())
            .with_span_processor(queue)
            .build();
        let tracer = Self {
            spans: provider.tracer(SCOPE),
            clock: clock.clone(),
        };
        let exporter = Exporter::new(ended, endpoint, instance, metrics, clock);
        (tracer, exporter)
    }

    /// Starts the span of a request, which is the current one for what runs within it.
    ///
    /// As `WithTracing` of Kubernetes 1.36 (`endpoints/filters/traces.go`), which uses `otelhttp`.
    #[must_use]
    pub fn request<A: IntoIterator<Item = Attribute>>(
        &self,
        name: String,
        incoming: Incoming<'_>,
        attributes: impl FnOnce() -> A,
    ) -> Span {
        let caller = extract(incoming.headers);
        let mut builder = self
            .spans
            .span_builder(attribute::cut(name.into()))
            .with_kind(SpanKind::Server)
            .with_start_time(system_time(incoming.since));
        let span = if incoming.is_trusted {
            self.spans.build_with_context(builder, &caller)
        } else {
            if let Some(link) = link(caller.span().span_context()) {
                builder = builder.with_links(vec![link]);
            }
            self.spans.build_with_context(builder, &Context::new())
        };
        let context = caller.with_span(span).with_value(TracedRequest {
            spans: self.spans.clone(),
            clock: self.clock.clone(),
            audit_id: incoming.audit_id.into(),
        });
        let span = Span::new(context, self.clock.clone());
        span.set(attributes);
        span
    }
}

/// Returns a link to a caller's span, if there is one, without the caller's state: the queue holds links, and a
/// stranger may choose a state of many KiB.
fn link(caller: &SpanContext) -> Option<Link> {
    caller.is_valid().then(|| {
        let to = SpanContext::new(
            caller.trace_id(),
            caller.span_id(),
            caller.trace_flags(),
            caller.is_remote(),
            TraceState::NONE,
        );
        Link::new(to, Vec::new(), 0)
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::Status;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_strangers_send_takes_little_room_in_the_queue() {
        let (queue, mut ended) = queue(SpanMetrics::default());
        let every = Sampling {
            per_million: 1_000_000,
        };
        let provider = SdkTracerProvider::builder()
            .with_sampler(every.sampler())
            .with_span_processor(queue)
            .build();
        let tracer = Tracer {
            spans: provider.tracer(SCOPE),
            clock: Clock::real(),
        };
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(PARENT));
        headers.insert("tracestate", HeaderValue::from_static("vendor=1"));
        let incoming = Incoming {
            headers: &headers,
            is_trusted: false,
            since: Timestamp::UNIX_EPOCH,
            audit_id: "a",
        };
        let span = tracer.request("get".to_owned(), incoming, || []);
        span.fail("x".repeat(1 << 20));
        drop(span);
        let span = ended.try_recv().expect("a span");
        let [link] = &span.links.links[..] else {
            panic!("one link: {:?}", span.links);
        };
        let caller = u128::from_be_bytes(link.span_context.trace_id().to_bytes());
        assert_eq!(caller, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(link.span_context.trace_state().header(), "");
        assert_ne!(span.span_context.trace_id(), link.span_context.trace_id());
        let Status::Error { description } = span.status else {
            panic!("failed");
        };
        assert_eq!(description.len(), 1 << 10);
    }
}
