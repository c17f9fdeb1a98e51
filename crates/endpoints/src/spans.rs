//! The spans of handlers, with the names and attributes of kube-apiserver's, and the line in the log for a slow one.
//!
//! `traceFields` of Kubernetes 1.36 (`endpoints/handlers/trace_util.go`), without `client` and `protocol`, which the
//! span of the request has.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderName};
use ringwatch::clock::Clock;
use ringwatch_registry::Verb;
use ringwatch_spans::{Attribute, Span, Steps, start, text};
use tracing::Level;

use super::call::Call;
use super::metrics::RequestKind;
use super::negotiation::Output;

/// The time from which a request counts as slow, as in kube-apiserver.
const SLOW: Duration = Duration::from_millis(500);
/// Subresources whose handlers pass bytes on, and have no spans.
const STREAMS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// A request's handler as a span, and as steps that are logged if they take long.
pub(super) struct HandlingSpan {
    name: &'static str,
    span: Span,
    /// `None` if the log has no lines of that level.
    steps: Option<Arc<Steps>>,
}

impl HandlingSpan {
    /// Begins to handle a request; `None` for streams, and for watches, which have spans of their own that last longer
    /// than their handler.
    pub(super) fn begin(call: &Call<'_>, kind: &RequestKind, clock: &Clock) -> Option<Self> {
        let name = name(call)?;
        let is_logged = tracing::enabled!(Level::INFO);
        Some(Self {
            name,
            span: start(name, || attributes(call, kind.verb, kind.scope)),
            steps: is_logged.then(|| Steps::new(clock)),
        })
    }

    /// Runs the handler.
    pub(super) async fn run<F: Future>(&self, handler: F) -> F::Output {
        let handler = self.span.within(handler);
        match &self.steps {
            Some(steps) => steps.record(handler).await,
            None => handler.await,
        }
    }

    /// Ends the span, and logs the request with its steps if it took long.
    pub(super) fn end(self, call: &Call<'_>, kind: &RequestKind) {
        drop(self.span);
        let Some(steps) = self.steps else { return };
        let total = steps.total();
        if total < SLOW {
            return;
        }
        let (name, milliseconds) = (self.name, total.as_millis());
        let mut fields = String::new();
        for Attribute { key, value, .. } in attributes(call, kind.verb, kind.scope) {
            // A name may have any character. Text can always be written to.
            let _ = write!(fields, "{key}:{},", value.as_str().escape_debug());
        }
        let fields = fields.trim_end_matches(',');
        let steps = steps.longest(SLOW);
        tracing::info!("Trace: {name:?} {fields} (total time: {milliseconds}ms): {steps}");
    }
}

/// Returns the name of a request's span; `None` if the request has none.
fn name(call: &Call<'_>) -> Option<&'static str> {
    if STREAMS.contains(&call.info.subresource.as_str()) {
        return None;
    }
    Some(match call.verb {
        Verb::Get => "Get",
        Verb::List => "List",
        Verb::Create => "Create",
        Verb::Update => "Update",
        Verb::Patch => "Patch",
        Verb::Delete | Verb::DeleteCollection => "Delete",
        Verb::Watch => return None,
    })
}

/// The spans of a watch.
#[derive(Debug, Default)]
pub(super) struct WatchSpans {
    /// The span of the objects with which it begins, if they were asked for; dropped once they are sent.
    pub(super) state: Span,
    /// The span of the whole watch; held for its drop.
    _all: Span,
}

impl WatchSpans {
    /// Starts the spans of a watch.
    pub(super) fn start(call: &Call<'_>, with_state: bool, output: Output) -> Self {
        let scope = match (call.info.name.as_str(), call.info.namespace.as_str()) {
            ("", "") => "cluster",
            ("", _) => "namespace",
            _ => "resource",
        };
        let state = match with_state {
            true => start("WatchList", || attributes(call, "WATCH", scope)),
            false => Span::default(),
        };
        let media_type = output.format.stream_media_type();
        Self {
            state,
            _all: start("WatchServer.HandleHTTP", || written(call, media_type)),
        }
    }
}

/// Starts the span of an object or list that is being encoded.
pub(super) fn of_encoding(call: &Call<'_>, output: Output) -> Span {
    let media_type = output.format.media_type();
    start("SerializeObject", || written(call, media_type))
}

fn written(call: &Call<'_>, media_type: &str) -> [Attribute; 3] {
    [
        text("method", call.method.as_str()),
        text("url", &call.info.path),
        text("mediaType", media_type),
    ]
}

fn attributes(call: &Call<'_>, verb: &str, scope: &str) -> [Attribute; 11] {
    let info = call.info;
    [
        text("accept", header(call.headers, &ACCEPT)),
        text("api-group", &info.group),
        text("api-version", &info.version),
        text("name", &info.name),
        text("subresource", &info.subresource),
        text("namespace", &info.namespace),
        text("resource", &info.resource),
        text("scope", scope),
        text("url", &info.path),
        text("user-agent", header(call.headers, &USER_AGENT)),
        text("verb", verb),
    ]
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}
