//! Calls webhooks over TLS, with limits on time and response size.
//!
//! Each call has a connection of its own, polled by the caller's task; so it is closed when the caller stops waiting.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use ringwatch::clock::Clock;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_http::client::{Backend, ExchangeError, fetch, https_get};
use ringwatch_http::full;
use ringwatch_observe::webhook_calls::WebhookCalls;
use ringwatch_spans::{inject, outgoing_call};
use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::tls_client::BundleTls;

use super::{CallError, CallUrl, ClientConfig, WebhookClient, WebhookTarget};

/// Maximum number of bytes of a response's body.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Maximum number of bytes of an error's body that are shown.
const SHOWN_BYTES_MAX: usize = 2 << 10;

/// Maximum number of bytes of a Status that an error's body may be.
const STATUS_BYTES_MAX: usize = 64 << 10;

/// The statuses of temporary failures, after which the call is retried.
const PASSING: [StatusCode; 3] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::GATEWAY_TIMEOUT,
];

/// Finds the addresses of services.
#[async_trait]
pub trait ServiceResolver: Debug + Send + Sync {
    /// Returns one host and port behind a port of a service.
    ///
    /// # Errors
    /// A message in kube-apiserver's words if the service, the port or a ready endpoint is missing, or cannot be read.
    async fn address(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String>;
}

/// Asks webhooks over the network.
#[derive(Debug)]
pub struct NetworkClient {
    /// Resolves services to addresses of their endpoints.
    services: Arc<dyn ServiceResolver>,
    /// The client's side of TLS, by a webhook's `caBundle` or the machine's authorities.
    tls: BundleTls,
    /// Counts the calls.
    calls: WebhookCalls,
    /// The clock of the calls' timeouts.
    clock: Clock,
}

/// The address of a webhook, and the request's target there.
#[derive(Debug)]
struct CallTarget {
    backend: Backend,
    /// The authority of the request, `host:port`.
    authority: String,
    path: String,
}

impl NetworkClient {
    /// Creates a client that resolves services by `services`.
    #[must_use]
    pub fn new(services: Arc<dyn ServiceResolver>, calls: WebhookCalls, clock: Clock) -> Self {
        Self {
            services,
            tls: BundleTls::default(),
            calls,
            clock,
        }
    }

    async fn target(
        &self,
        to: &ClientConfig,
        CallUrl { authority, path }: CallUrl,
        timeout: Duration,
    ) -> Result<CallTarget, CallError> {
        let bundle = to.ca_bundle.as_deref();
        let tls = match &to.pair {
            None => self.tls.config(bundle).map_err(lasting)?,
            Some(pair) => {
                let certificate = String::from_utf8_lossy(&pair.certificate);
                let with_identity = BundleTls {
                    identity: Some(ClientIdentity::read(&certificate, &pair.key).map_err(lasting)?),
                    ..BundleTls::default()
                };
                with_identity.config(bundle).map_err(lasting)?
            }
        };
        match &to.target {
            WebhookTarget::Url(_) | WebhookTarget::Server(_) => {
                let uri = format!("https://{authority}/");
                let uri: Uri = uri.parse().map_err(|error| lasting(format!("{error}")))?;
                let backend = https_get::backend(&uri, &tls, timeout, &self.clock);
                Ok(CallTarget {
                    backend: backend.ok_or_else(|| lasting("the url has no host".to_owned()))?,
                    authority,
                    path,
                })
            }
            WebhookTarget::Service {
                namespace,
                name,
                port,
                ..
            } => {
                // As if the connection failed, which is made to the name of the service.
                let found = self.services.address(namespace, name, *port).await;
                let (host, found) =
                    found.map_err(|why| lasting(posting(&authority, &path, why)))?;
                let server = format!("{name}.{namespace}.svc");
                Ok(CallTarget {
                    authority,
                    path,
                    backend: Backend {
                        host,
                        port: found,
                        tls: Some(tls),
                        name: server,
                        may_be_local: true,
                        connect_timeout: timeout,
                        bytes_per_second: None,
                        kept: None,
                        clock: self.clock.clone(),
                    },
                })
            }
        }
    }

    async fn exchange(
        target: &CallTarget,
        token: Option<&str>,
        review: Bytes,
    ) -> Result<Bytes, CallError> {
        let mut request = Request::post(&target.path)
            .header(HOST, &target.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "kube-apiserver-admission");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(full(review));
        let request = request.map_err(|error| lasting(error.to_string()))?;
        let span = outgoing_call::start(request.method(), &target.authority, &target.path);
        let answer = span
            .within(async {
                let mut request = request;
                inject(request.headers_mut());
                fetch(&target.backend, request, ANSWER_BYTES_MAX).await
            })
            .await;
        let answer = answer.map_err(|error| {
            outgoing_call::failed(&span, &error);
            CallError {
                is_passing: matches!(&error, ExchangeError::Http(broken) if is_reset(broken)),
                why: error.to_string(),
                status: None,
            }
        })?;
        let status = answer.status();
        outgoing_call::answered(&span, status);
        if status.is_success() {
            return Ok(answer.into_body());
        }
        let waits =
            status == StatusCode::SERVICE_UNAVAILABLE && answer.headers().contains_key(RETRY_AFTER);
        Err(CallError {
            why: refusal(status, answer.headers(), answer.body()),
            is_passing: waits || PASSING.contains(&status),
            status: Some(status.as_u16()),
        })
    }
}

#[async_trait]
impl WebhookClient for NetworkClient {
    async fn post(
        &self,
        to: &ClientConfig,
        review: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let url = to.target.call_url().map_err(lasting)?;
        let url = CallUrl {
            path: format!("{}?timeout={}s", url.path, timeout.as_secs()),
            ..url
        };
        // An answer that refuses is no failure to post.
        let prefixed = |error: CallError| match error.status {
            Some(_) => error,
            None => CallError {
                why: posting(&url.authority, &url.path, &error.why),
                ..error
            },
        };
        let call = async {
            let target = self.target(to, url.clone(), timeout).await?;
            let answered = Self::exchange(&target, to.token.as_deref(), review).await;
            answered.map_err(prefixed)
        };
        let call = async {
            let answered = self.clock.timeout(timeout, call).await;
            let late = || Err(prefixed(lasting("context deadline exceeded".to_owned())));
            answered.unwrap_or_else(|_| late())
        };
        let calls = &self.calls;
        calls.counted(&to.name, &to.target, &self.clock, call).await
    }
}

/// Returns the words for a failure to post to an address.
fn posting(authority: &str, path: &str, why: impl Display) -> String {
    format!("Post \"https://{authority}{path}\": {why}")
}

fn lasting(why: String) -> CallError {
    CallError {
        why,
        is_passing: false,
        status: None,
    }
}

/// Returns true if an established connection broke off.
fn is_reset(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|it| it.downcast_ref::<std::io::Error>());
    error.is_incomplete_message()
        || source.is_some_and(|it| it.kind() == std::io::ErrorKind::ConnectionReset)
}

/// Describes a response with the status of an error, in the words of client-go: those of the Status in its body, if it
/// has one, or else of `NewGenericServerResponse`.
fn refusal(status: StatusCode, headers: &HeaderMap, content: &[u8]) -> String {
    if let Some(message) = message_of_status(content) {
        return message;
    }
    let shown = &content[..content.len().min(SHOWN_BYTES_MAX)];
    let shown = String::from_utf8_lossy(shown);
    let shown = if is_text(headers) {
        shown.trim()
    } else {
        "unknown"
    };
    let why = match status.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(shown, "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        403 | 406 | 415 => shown,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                quoted(shown)
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    why.to_owned()
}

/// Returns the message of a failure that is told in a Status.
fn message_of_status(content: &[u8]) -> Option<String> {
    let content = Some(content).filter(|it| it.len() <= STATUS_BYTES_MAX)?;
    let body: serde_json::Value = serde_json::from_slice(content).ok()?;
    let is_failure = body["kind"] == "Status" && body["status"] == "Failure";
    let message = body["message"].as_str().filter(|_| is_failure)?;
    Some(message.chars().take(SHOWN_BYTES_MAX).collect())
}

/// Returns true if a response says that it is text, or nothing.
fn is_text(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    said.is_none_or(|it| {
        it.is_empty()
            || it
                .get(..5)
                .is_some_and(|it| it.eq_ignore_ascii_case(b"text/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_words_of_client_go() {
        let told = |code: u16, form: Option<&'static str>, body: &str| {
            let status = StatusCode::from_u16(code).expect("a status");
            let form = form.map(|it| (CONTENT_TYPE, HeaderValue::from_static(it)));
            refusal(status, &HeaderMap::from_iter(form), body.as_bytes())
        };
        let json = Some("application/json");
        let text = Some("Text/plain; charset=utf-8");
        assert_eq!(
            told(500, text, " out \"of\" order\n"),
            r#"an error on the server ("out \"of\" order") has prevented the request from succeeding"#
        );
        let unknown =
            r#"an error on the server ("unknown") has prevented the request from succeeding"#;
        assert_eq!(told(500, json, r#"{"secret": 1}"#), unknown);
        assert_eq!(told(403, None, "go away"), "go away");
        assert_eq!(told(403, json, "{}"), "unknown");
        let status = r#"{"kind": "Status", "status": "Failure", "message": "no such API"}"#;
        assert_eq!(told(404, json, status), "no such API");
        assert_eq!(
            told(302, text, ""),
            "the server responded with the status code 302 but did not return more information"
        );
    }
}
