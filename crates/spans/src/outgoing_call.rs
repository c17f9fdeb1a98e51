//! The span of a request to another server: a webhook, or the server of an aggregated API.
//!
//! Its name and attributes are those of `otelhttp.Transport`, by which kube-apiserver sends such requests.

use http::uri::Authority;
use http::{Method, StatusCode};

use super::{Span, number, start_call, text};

/// Starts the span of a request to this authority, `host:port`.
#[must_use]
pub fn start(method: &Method, authority: &str, path_and_query: &str) -> Span {
    start_call(format!("HTTP {method}"), || {
        let mut attributes = vec![
            text("http.request.method", method.as_str()),
            text("url.full", &format!("https://{authority}{path_and_query}")),
        ];
        if let Ok(authority) = authority.parse::<Authority>() {
            attributes.push(text("server.address", authority.host()));
            let port = authority
                .port_u16()
                .map(|it| number("server.port", it.into()));
            attributes.extend(port);
        }
        attributes
    })
}

/// Notes the status of the answer.
pub fn answered(span: &Span, status: StatusCode) {
    span.set(|| [number("http.response.status_code", status.as_u16().into())]);
    if status.is_client_error() || status.is_server_error() {
        span.fail("");
    }
}

/// Notes that there is no answer.
pub fn failed(span: &Span, error: &dyn std::error::Error) {
    if span.is_sampled() {
        span.fail(error.to_string());
    }
}
