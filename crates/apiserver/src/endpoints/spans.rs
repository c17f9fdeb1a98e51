//! The spans of handlers, with the names and attributes of kube-apiserver's.
//!
//! `traceFields` of Kubernetes 1.36 (`endpoints/handlers/trace_util.go`), without `client` and `protocol`, which the span
//! of the request has.

use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderName};
use ringwatch_registry::Verb;
use ringwatch_spans::{Attribute, Span, start, text};

use super::call::Call;
use super::metrics::RequestKind;
use super::negotiation::Output;

/// Subresources whose handlers pass bytes on, and have no spans.
const STREAMS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// Starts the span of a request's handler. Watches have spans of their own, which last longer than their handler.
pub(super) fn of_handler(call: &Call<'_>, kind: &RequestKind) -> Span {
    if STREAMS.contains(&call.info.subresource.as_str()) {
        return Span::default();
    }
    let name = match call.verb {
        Verb::Get => "Get",
        Verb::List => "List",
        Verb::Create => "Create",
        Verb::Update => "Update",
        Verb::Patch => "Patch",
        Verb::Delete | Verb::DeleteCollection => "Delete",
        Verb::Watch => return Span::default(),
    };
    start(name, || attributes(call, kind.verb, kind.scope))
}

/// The spans of a watch.
#[derive(Debug)]
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
