//! A span, which ends when it is dropped, and the current one.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::Either;
use http::HeaderMap;
use jiff::Timestamp;
use opentelemetry::Context;
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry_sdk::trace::SdkTracer;
use ringwatch::clock::Clock;

use crate::attribute::{self, Attribute};
use crate::headers::{TRACEPARENT, extract};
use crate::steps::{Step, step};

/// The facts of the request that is being handled, in its context.
pub(crate) struct TracedRequest {
    /// Makes its spans.
    pub(crate) spans: SdkTracer,
    /// The audit id, which all its spans have.
    pub(crate) audit_id: Arc<str>,
    pub(crate) clock: Clock,
}

/// A step of a request, timed until this is dropped; nothing if the request is not traced, and its steps are not
/// recorded.
#[derive(Debug, Default)]
pub struct Span {
    running: Option<Box<Running>>,
    /// Held for its drop.
    _step: Option<Step>,
}

/// A span that has begun.
#[derive(Debug)]
struct Running {
    /// The context with this span in it.
    context: Context,
    clock: Clock,
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = system_time(self.clock.wall());
        self.context.span().end_with_timestamp(now);
    }
}

pub(crate) fn system_time(at: Timestamp) -> SystemTime {
    at.into()
}

/// Starts a step of the request that is being handled. Without one, or if its spans are not sampled, there is no span,
/// and the attributes are not asked for.
#[must_use]
pub fn start<A: IntoIterator<Item = Attribute>>(
    name: impl Into<Cow<'static, str>>,
    attributes: impl FnOnce() -> A,
) -> Span {
    begin(SpanKind::Internal, name, attributes)
}

/// Starts a call of another server, which that server may continue: see [`crate::inject`].
#[must_use]
pub fn start_call<A: IntoIterator<Item = Attribute>>(
    name: impl Into<Cow<'static, str>>,
    attributes: impl FnOnce() -> A,
) -> Span {
    begin(SpanKind::Client, name, attributes)
}

fn begin<A: IntoIterator<Item = Attribute>>(
    kind: SpanKind,
    name: impl Into<Cow<'static, str>>,
    attributes: impl FnOnce() -> A,
) -> Span {
    let name = attribute::cut(name.into());
    let step = step(name.clone());
    Context::map_current(|parent| {
        let Some(traced) = parent
            .get::<TracedRequest>()
            .filter(|_| parent.span().is_recording())
        else {
            return Span {
                running: None,
                _step: step,
            };
        };
        let builder = traced
            .spans
            .span_builder(name)
            .with_kind(kind)
            .with_start_time(system_time(traced.clock.wall()));
        let span = traced.spans.build_with_context(builder, parent);
        let mut span = Span::new(parent.with_span(span), traced.clock.clone());
        span._step = step;
        span.set(|| {
            let audit_id = Attribute::new("audit-id", traced.audit_id.clone());
            attributes().into_iter().chain([audit_id])
        });
        span
    })
}

/// Returns a step of a request so that it goes on with the current span on whichever thread it is polled.
#[must_use]
pub fn carried<T: 'static>(
    step: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    let current = Context::map_current(|it| it.has_active_span().then(|| it.clone()));
    match current {
        Some(context) => Box::pin(step.with_context(context)),
        None => step,
    }
}

impl Span {
    /// Returns the span of a context, which ends by this clock.
    pub(crate) fn new(context: Context, clock: Clock) -> Self {
        Self {
            running: Some(Box::new(Running { context, clock })),
            _step: None,
        }
    }

    /// Returns a stand-in for the span of the caller that a `traceparent` names, which goes on to other servers as it
    /// is; nothing if there is none. kube-apiserver passes it on so if it exports no spans of its own.
    #[must_use]
    pub fn of_caller(headers: &HeaderMap, clock: &Clock) -> Self {
        match headers.contains_key(TRACEPARENT) {
            true => Self::new(extract(headers), clock.clone()),
            false => Self::default(),
        }
    }

    /// Returns true if there is neither a span nor a caller's, so that nothing is to be passed on or noted.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.running.is_none()
    }

    /// Runs a future in which this span is the current one.
    pub fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        match &self.running {
            Some(running) => Either::Left(future.with_context(running.context.clone())),
            None => Either::Right(future),
        }
    }

    /// Adds attributes, which are asked for only if the span is sampled.
    pub fn set<A: IntoIterator<Item = Attribute>>(&self, attributes: impl FnOnce() -> A) {
        if let Some(running) = self.sampled() {
            running.context.span().set_attributes(attributes());
        }
    }

    /// Marks the step as failed, with a description unless it is empty, which is cut off if it is long.
    pub fn fail(&self, description: impl Into<Cow<'static, str>>) {
        if let Some(running) = self.sampled() {
            let description = attribute::cut(description.into());
            running
                .context
                .span()
                .set_status(Status::error(description));
        }
    }

    /// Returns true if the span is exported when it ends.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sampled().is_some()
    }

    /// Returns the context with this span in it, unless the request is not traced.
    pub(crate) fn context(&self) -> Option<&Context> {
        self.running.as_deref().map(|it| &it.context)
    }

    fn sampled(&self) -> Option<&Running> {
        let running = self.running.as_deref();
        running.filter(|it| it.context.span().is_recording())
    }
}
