//! Spans of requests, as OpenTelemetry has them: where they begin, how they reach the code below, and their export.
//!
//! ```text
//!   filter --Tracer::request--> Span --within--> handlers, storages, webhooks: start, start_call
//!                                |                                   `- inject: traceparent of an outgoing request, also to etcd
//!                                v  dropped
//!                      bounded queue --> Exporter, a task --OTLP over gRPC--> collector
//! ```
//!
//! The current span belongs to the future that runs in [`Span::within`], so the layers between do not pass it on. Where
//! there is no current span, as without `--tracing-config-file`, [`start`] reads thread-local values and does no more.
//! Steps of a request that are recorded for the log, [`Steps`], go the same way; a span is one of them.
//!
//! [`TracedHistogram`] leaves the ids of the current span with what it observes, so that one finds a slow request's
//! trace.
//!
//! Spans and the headers that carry them belong here. Decisions which requests and steps have spans, and with which
//! attributes, do not.

mod attribute;
mod endpoint;
mod exemplar;
mod exporter;
mod headers;
mod metrics;
pub mod outgoing_call;
mod queue;
mod span;
mod steps;
mod tracer;

pub use attribute::{Attribute, number, text};
pub use endpoint::Endpoint;
pub use exemplar::TracedHistogram;
pub use exporter::Exporter;
pub use headers::inject;
pub use metrics::SpanMetrics;
pub use span::{Span, carried, start, start_call};
pub use steps::{Step, Steps, step};
pub use tracer::{Incoming, Sampling, Tracer};
