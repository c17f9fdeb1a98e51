//! The span of a request, which lasts until its body is sent.
//!
//! Ported from `endpoints/filters/traces.go` of Kubernetes 1.36: `WithTracing`, `getSpanNameFromRequestInfo` and
//! `notSystemPrivilegedGroup`. The attributes are those of OpenTelemetry's semantic conventions for HTTP servers.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, Version};
use http_body_util::BodyExt;
use hyper::body::Frame;
use ringwatch_apimachinery::User;
use ringwatch_endpoints::RequestInfo;
use ringwatch_endpoints::audit_id::AUDIT_ID;
use ringwatch_http::EventStream;
use ringwatch_spans::{Attribute, Incoming, Span, number, text};

use super::audit::{FORWARDED_FOR, source_ips};
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// The groups whose members decide if their requests are sampled.
const TRUSTED_GROUPS: [&str; 2] = ["system:masters", "system:monitoring"];

/// Maximum number of bytes of an audit id in spans: `GetAuditIDTruncated` of Kubernetes 1.36.
const AUDIT_ID_BYTES_MAX: usize = 64;

/// Answers a request of an authenticated user, as a span if it is sampled.
pub(super) fn traced<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let headers = state.request.headers();
    let span = match &filters.tracer {
        None => Span::of_caller(headers, &filters.clock),
        Some(tracer) => {
            let audit_id = header(headers, &AUDIT_ID);
            let end = audit_id.floor_char_boundary(AUDIT_ID_BYTES_MAX);
            let incoming = Incoming {
                headers,
                is_trusted: is_trusted(&state.user),
                since: state.began.1,
                audit_id: &audit_id[..end],
            };
            let name = name(state.method.as_str(), &state.info);
            tracer.request(name, incoming, || attributes(state))
        }
    };
    if span.is_absent() {
        return next.run(filters, state);
    }
    Box::pin(async move {
        let answered = span.within(async { next.run(filters, state).await });
        let response = answered.await;
        if !span.is_sampled() {
            return response;
        }
        let status = response.status();
        span.set(|| [number("http.response.status_code", status.as_u16().into())]);
        if status.is_server_error() {
            span.fail("");
        }
        let mut response = response;
        if let Some(watch) = response.extensions_mut().get_mut::<EventStream>() {
            // Each of its frames is counted here.
            watch.shared = None;
        }
        response.map(|held| {
            let mut counted = CountedSpan { span, bytes: 0 };
            held.wrapped(|body| {
                body.inspect_frame(move |it| counted.count(it))
                    .boxed_unsync()
            })
        })
    })
}

/// Returns true if the user's own span is the parent of the request's, and decides if it is sampled.
fn is_trusted(user: &User) -> bool {
    let mut groups = user.groups.iter();
    groups.any(|group| TRUSTED_GROUPS.contains(&group.as_str()))
}

/// Returns the name of a request's span: the method, and the path without names.
fn name(method: &str, info: &RequestInfo) -> String {
    if !info.is_resource {
        return method.to_owned();
    }
    let mut name = match info.group.as_str() {
        "" => format!("{method} /api"),
        group => format!("{method} /apis/{group}"),
    };
    let namespace = if info.namespace.is_empty() {
        ""
    } else {
        "namespaces/{:namespace}"
    };
    let object = if info.name.is_empty() { "" } else { "{:name}" };
    for part in [
        info.version.as_str(),
        namespace,
        &info.resource,
        object,
        &info.subresource,
    ] {
        if !part.is_empty() {
            name.push('/');
            name.push_str(part);
        }
    }
    name
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Returns the facts about a request that are known before it is answered.
fn attributes(state: &RequestState<'_>) -> Vec<Attribute> {
    let (headers, uri) = (state.request.headers(), &state.uri);
    let authority = uri.authority().cloned();
    let authority = authority.or_else(|| header(headers, &HOST).parse::<Authority>().ok());
    let target = uri.path_and_query().map_or("/", |it| it.as_str());
    let mut attributes = vec![
        text("http.request.method", state.method.as_str()),
        text("url.scheme", "https"),
        text("url.path", uri.path()),
        text("http.target", target),
        text("network.protocol.version", version(state.request.version())),
        text("audit-id", header(headers, &AUDIT_ID)),
    ];
    if let Some(authority) = authority {
        attributes.push(text("server.address", authority.host()));
        let port = authority
            .port_u16()
            .map(|port| number("server.port", port.into()));
        attributes.extend(port);
    }
    let agent = header(headers, &USER_AGENT);
    if !agent.is_empty() {
        attributes.push(text("user_agent.original", agent));
    }
    let peer = state.client.address;
    if let Some(peer) = peer {
        attributes.push(text(
            "network.peer.address",
            &peer.ip().to_canonical().to_string(),
        ));
        attributes.push(number("network.peer.port", peer.port().into()));
    }
    let remote = peer.map(|it| it.ip());
    if let Some(client) = source_ips(header(headers, &FORWARDED_FOR), "", remote).first() {
        attributes.push(text("client.address", &client.to_string()));
    }
    let length = header(headers, &CONTENT_LENGTH).parse().unwrap_or_default();
    if length > 0 {
        attributes.push(number("http.request.body.size", length));
    }
    attributes
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        _ => "1.1",
    }
}

/// The span of a request, which ends with the body whose bytes it counts.
struct CountedSpan {
    span: Span,
    bytes: u64,
}

impl CountedSpan {
    fn count(&mut self, frame: &Frame<Bytes>) {
        self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
    }
}

impl Drop for CountedSpan {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.span
                .set(|| [number("http.response.body.size", self.bytes)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn spans_are_named_by_paths_without_names() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/pods", "GET /api/v1/pods"),
            (
                Method::GET,
                "/api/v1/namespaces/a/pods/b",
                "GET /api/v1/namespaces/{:namespace}/pods/{:name}",
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "PATCH /apis/apps/v1/namespaces/{:namespace}/deployments/{:name}/scale",
            ),
            (Method::GET, "/metrics", "GET"),
            (Method::GET, "/apis/apps/v1", "GET"),
        ] {
            let info = RequestInfo::new(&method, path, "");
            assert_eq!(name(method.as_str(), &info), expected);
        }
    }
}
