//! The audit filter: records the stages of a request, around everything that comes after authentication.
//!
//! `WithAudit` and `WithFailedAuthenticationAudit` of Kubernetes 1.36 (`endpoints/filters`).

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use ringwatch_audit::{
    AuditBody as RecordedBody, Auditor, Encoding, Level, Recording, RequestHead,
    Response as AuditedResponse,
};
use ringwatch_endpoints::audit_id::AUDIT_ID;
use ringwatch_endpoints::{
    self as endpoints, NOT_ACCEPTABLE, ProxiedResponse, Refusal, RequestInfo, TextError,
};
use ringwatch_http::{Body, EventStream, Tunnel};

use super::audited_body::{AuditedBody, Capture};
use super::panic_recovery::panic_text;
use crate::answer;
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Maximum number of bytes of the Status of a failed watch, which is read before the response begins.
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// A request without a response yet. If it is dropped, its client has gone.
struct UnansweredRequest(Option<Arc<Recording>>);

impl Drop for UnansweredRequest {
    fn drop(&mut self) {
        if let Some(recording) = self.0.take() {
            recording.complete_now(None);
        }
    }
}

/// Answers a request of an authenticated user, and records it if the policy says so.
pub(super) fn audit<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let recording = filters.auditor.as_ref().and_then(|it| begin(it, state));
    let Some(recording) = recording else {
        return next.run(filters, state);
    };
    Box::pin(async move {
        let authenticated = filters.clock.now().duration_since(state.began.0);
        recording.took("authentication", authenticated);
        let mut unanswered = UnansweredRequest(Some(Arc::clone(&recording)));
        if let Err(error) = recording.received().await {
            let text = format!("Internal Server Error: {:?}: {error}", state.info.path);
            return TextError::Internal(&text).response().map(Body::from);
        }
        state.recording = Some(Arc::clone(&recording));
        let answered = async { next.run(filters, &mut *state).await };
        let response = match AssertUnwindSafe(answered).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                let text = panic_text(&*panic).to_owned();
                recording.panicked(&text).await;
                resume_unwind(panic)
            }
        };
        let response = match state.info.is_long_running() {
            true => begin_response(&recording, response).await,
            false => response,
        };
        let capture = capture(&state.info, &response, recording.level());
        let code = response.status().as_u16();
        unanswered.0 = None;
        response.map(|held| {
            held.wrapped(|body| AuditedBody::new(body, recording, code, capture).boxed_unsync())
        })
    })
}

/// Refuses a request whose user is not known, and records that if the policy says so. There is one event: that the
/// response begins. It is `WithFailedAuthenticationAudit`.
pub(super) async fn refuse(
    filters: &Filters,
    state: &mut RequestState<'_>,
    refusal: &Refusal,
) -> Response<Body> {
    let response = answer::refused_to(refusal, state.request.headers(), state.query());
    let response = response.map(Body::from);
    let recording = filters.auditor.as_ref().and_then(|it| begin(it, state));
    let Some(recording) = recording else {
        return response;
    };
    let message = match refusal {
        Refusal::InvalidTimeout(message) => message.clone(),
        _ => attempts(state),
    };
    let (response, outcome) = with_content(response).await;
    recording
        .refused(AuditedResponse { message, ..outcome })
        .await;
    response
}

/// Begins the record of a request; returns `None` if nothing is recorded.
fn begin(auditor: &Arc<Auditor>, state: &RequestState<'_>) -> Option<Arc<Recording>> {
    let info = &state.info;
    let selected = endpoints::selected_name(info, state.query());
    let mut attributes = info.attributes(&state.user);
    attributes.path = &info.path;
    if info.is_resource {
        attributes.name = selected.as_deref().unwrap_or(&info.name);
    }
    let headers = state.request.headers();
    let text = |name: &HeaderName| {
        let value = headers
            .get(name)
            .map(|it| String::from_utf8_lossy(it.as_bytes()));
        value.unwrap_or_default()
    };
    let address = state.client.address.map(|it| it.ip());
    let uri = &state.uri;
    let uri = uri
        .path_and_query()
        .map_or_else(|| uri.path(), |it| it.as_str());
    let head = RequestHead {
        audit_id: &text(&AUDIT_ID),
        uri,
        user_agent: &text(&USER_AGENT),
        source_ips: source_ips(&text(&FORWARDED_FOR), &text(&REAL_IP), address),
        began: state.began,
    };
    auditor.begin(&attributes, head)
}

/// Returns the addresses that a request came from: `SourceIPs` of Kubernetes 1.36 (`apimachinery/pkg/util/net`).
pub(super) fn source_ips(
    forwarded_for: &str,
    real_ip: &str,
    remote: Option<IpAddr>,
) -> Vec<IpAddr> {
    let parsed = forwarded_for.split(',').map(|it| it.trim().parse());
    let mut found: Vec<IpAddr> = parsed.filter_map(Result::ok).collect();
    if let Ok(real) = real_ip.parse()
        && !found.contains(&real)
    {
        found.push(real);
    }
    if let Some(remote) = remote.map(|it| it.to_canonical())
        && found.last() != Some(&remote)
    {
        found.push(remote);
    }
    found
}

/// Names the kinds of credentials of a request that cannot be authenticated.
fn attempts(state: &RequestState<'_>) -> String {
    let mut attempted = Vec::new();
    let authorization = state.request.headers().get(AUTHORIZATION);
    let authorization = authorization
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let scheme = authorization
        .trim()
        .split_once(' ')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    if let Some(scheme @ ("basic" | "bearer")) = scheme.as_deref() {
        attempted.push(scheme);
    }
    let mut parameters = form_urlencoded::parse(state.query().as_bytes());
    if parameters.any(|(name, value)| name == "access_token" && !value.trim().is_empty()) {
        attempted.push("access_token");
    }
    if state.client.shows_certificate {
        attempted.push("x509");
    }
    if attempted.is_empty() {
        return "Authentication failed, no credentials provided".to_owned();
    }
    format!("Authentication failed, attempted: {}", attempted.join(", "))
}

/// Records that a long-running response begins. The Status of one that fails is part of that event.
async fn begin_response(recording: &Recording, response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let is_short = length.is_some_and(|it| it > 0 && it <= STATUS_BYTES_MAX);
    let is_own = response.extensions().get::<ProxiedResponse>().is_none();
    let fails = response.status().is_client_error() || response.status().is_server_error();
    if !(is_short && is_own && fails && encoding(response.headers()).is_some()) {
        recording.started(outcome(&response, None)).await;
        return response;
    }
    let (response, outcome) = with_content(response).await;
    recording.started(outcome).await;
    response
}

/// Reads the body of one of the server's own short responses, for an event before it is sent.
async fn with_content(response: Response<Body>) -> (Response<Body>, AuditedResponse) {
    let (parts, held) = response.into_parts();
    let (content, held) = held.read_whole().await;
    let response = Response::from_parts(parts, held);
    let outcome = outcome(&response, content);
    (response, outcome)
}

fn outcome(response: &Response<Body>, content: Option<Bytes>) -> AuditedResponse {
    let encoding = encoding(response.headers());
    let body = content
        .zip(encoding)
        .map(|(content, encoding)| RecordedBody::whole(encoding, content));
    AuditedResponse {
        code: response.status().as_u16(),
        body,
        ..AuditedResponse::default()
    }
}

fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let media_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Encoding::of_media_type(media_type)
}

/// Decides what is kept of a response's body.
fn capture(info: &RequestInfo, response: &Response<Body>, level: Level) -> Capture {
    let extensions = response.extensions();
    let is_forwarded = extensions.get::<ProxiedResponse>().is_some()
        || extensions.get::<EventStream>().is_some()
        || extensions.get::<Tunnel>().is_some();
    // The refusal of a form that cannot be written is in none that was asked for, and kube-apiserver does not record
    // it.
    let status = response.status();
    let is_unwritten = status == NOT_ACCEPTABLE;
    let is_stream =
        info.is_long_running() && !(status.is_client_error() || status.is_server_error());
    let Some(encoding) =
        encoding(response.headers()).filter(|_| !is_forwarded && !is_stream && !is_unwritten)
    else {
        return Capture::Nothing;
    };
    let is_gzip = response.headers().contains_key(CONTENT_ENCODING);
    let body = RecordedBody::new(encoding, is_gzip);
    let first = info.path.split('/').nth(1).unwrap_or_default();
    let has_objects = info.is_resource || matches!(first, "api" | "apis");
    if level >= Level::RequestResponse && has_objects {
        Capture::All(body)
    } else {
        Capture::Status(body)
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use ringwatch::clock::Clock;
    use ringwatch_authentication::Peer;
    use ringwatch_http::full;

    use super::*;
    use crate::request_state::ClientSide;

    #[test]
    fn the_addresses_of_proxies_come_before_the_connections_own() {
        let ips = |forwarded: &str, real: &str, remote: &str| -> Vec<String> {
            let remote = remote.parse().ok();
            let found = source_ips(forwarded, real, remote);
            found.iter().map(IpAddr::to_string).collect()
        };
        assert_eq!(ips("", "", "::ffff:10.0.0.1"), ["10.0.0.1"]);
        assert_eq!(
            ips("1.1.1.1, x, 2.2.2.2", "3.3.3.3", "4.4.4.4"),
            ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]
        );
        assert_eq!(
            ips("1.1.1.1,4.4.4.4", "1.1.1.1", "4.4.4.4"),
            ["1.1.1.1", "4.4.4.4"]
        );
        assert_eq!(ips("", "", ""), [""; 0]);
    }

    #[test]
    fn failed_credentials_are_named() {
        let attempt = |uri: &str, authorization: Option<&str>, shows_certificate| {
            let mut request = Request::get(uri);
            if let Some(value) = authorization {
                request = request.header(AUTHORIZATION, value);
            }
            let request = request.body(full("")).expect("a request");
            let client = ClientSide {
                address: None,
                shows_certificate,
                peer: &Peer::default(),
            };
            attempts(&RequestState::new(request, client, &|_| {}, &Clock::real()))
        };
        let none = "Authentication failed, no credentials provided";
        assert_eq!(attempt("/api", None, false), none);
        assert_eq!(attempt("/api", Some("Bearer"), false), none);
        assert_eq!(
            attempt("/api?access_token=x", Some("bearer t"), true),
            "Authentication failed, attempted: bearer, access_token, x509"
        );
    }
}
