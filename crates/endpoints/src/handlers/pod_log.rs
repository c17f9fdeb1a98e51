//! The `log` subresource of pods: the output of a container, from the kubelet of the pod's node.

use std::time::Duration;

use form_urlencoded::Serializer;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::upgrade::is_web_socket;
use ringwatch_http::client::{Backend, BackendAnswer, exchange};
use ringwatch_http::{ResponseBody, full};
use serde_json::json;

use super::kubelet_target::{kubelet, node_of, pod};
use super::pod_container::container;
use crate::call::Call;
use crate::errors::Failure;
use crate::params::Query;
use crate::websocket;

/// Maximum number of bytes of a kubelet's error response, as in kube-apiserver.
const REFUSAL_BYTES_MAX: usize = 50_000;
/// Maximum time to read a kubelet's error response, in seconds.
const REFUSAL_SECONDS_MAX: u64 = 5;

/// Answers with the log from the kubelet; empty for a pod without a node, which has not logged anything.
///
/// # Errors
/// 422 and 400 for parameters, 404 for a pod or node that does not exist, 400 for a container that the
/// pod does not have, 500 when the kubelet cannot be asked, and what the kubelet refuses with.
pub(crate) async fn pod_log(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    let query = log_query(call)?;
    let pod = pod(call).await?;
    let container = container(&pod, call.name(), call.query.first("container"))?;
    let Some(node) = node_of(&pod) else {
        return Ok(nothing());
    };
    let unverified = call.query.switch("insecureSkipTLSVerifyBackend") == Some(true);
    let backend = kubelet(call, node, unverified).await?;
    let (namespace, name) = (call.namespace(), call.name());
    let path = format!("/containerLogs/{namespace}/{name}/{container}{query}");
    let log = ask(&backend, &path).await?;
    if !(200..=206).contains(&log.status().as_u16()) {
        let code = log.status().as_u16();
        let text = beginning(log.into_body(), &call.context.clock).await;
        return Err(Failure::from_backend(code, &text, "pods/log", name));
    }
    if is_web_socket(call.headers) {
        return websocket::log(call.headers, log.into_body(), &call.context.clock);
    }
    let mut response = Response::new(log.into_body());
    let text = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, text);
    Ok(response)
}

fn nothing() -> Response<ResponseBody> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let no_cache = HeaderValue::from_static("no-cache, private");
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    response
}

/// Sends the request to the kubelet, and returns its response, be it a refusal.
async fn ask(backend: &Backend, path: &str) -> Result<Response<ResponseBody>, Failure> {
    let request = Request::builder().method(Method::GET).uri(path);
    let request = request.body(full("")).map_err(Failure::internal)?;
    let why = match exchange(backend, request).await {
        Ok(BackendAnswer::Answered(answer)) if answer.status().is_redirection() => {
            "redirects forbidden".to_owned()
        }
        Ok(BackendAnswer::Answered(answer)) => return Ok(answer),
        Ok(BackendAnswer::Switched(..)) => "an upgrade that nobody asked for".to_owned(),
        Err(error) => error.to_string(),
    };
    let authority = backend.authority();
    Err(Failure::untranslated(format!(
        "Get \"https://{authority}{path}\": {why}"
    )))
}

/// Reads the beginning of a refusal's body, as far as it comes in time.
async fn beginning(mut body: ResponseBody, clock: &Clock) -> String {
    let mut text = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            text.extend_from_slice(&frame.into_data().unwrap_or_default());
            if text.len() >= REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    let at_most = Duration::from_secs(REFUSAL_SECONDS_MAX);
    // The part received until then is used.
    let _ = clock.timeout(at_most, read).await;
    text.truncate(REFUSAL_BYTES_MAX);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the parameters as the kubelet takes them, in the order of their names.
fn log_query(call: &Call<'_>) -> Result<String, Failure> {
    let mut pairs = Vec::new();
    for name in ["follow", "previous", "timestamps"] {
        if call.query.switch(name) == Some(true) {
            pairs.push((name, "true".to_owned()));
        }
    }
    let mut errors = Vec::new();
    for (name, least, why) in [
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ] {
        let Some(number) = call.query.integer(name)? else {
            continue;
        };
        let both = name == "sinceSeconds" && !call.query.first("sinceTime").is_empty();
        if both {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("", why));
        } else if number < least {
            errors.push(FieldError::invalid(name, &json!(number), why));
        }
        pairs.push((name, number.to_string()));
    }
    pairs.extend(since(call.query)?.map(|time| ("sinceTime", time)));
    if call.query.has("stream") {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if !errors.is_empty() {
        return Err(Failure::invalid_parameters(
            "PodLogOptions",
            call.name(),
            errors,
        ));
    }
    pairs.sort_unstable();
    let mut query = Serializer::new(String::new());
    query.extend_pairs(pairs);
    let query = query.finish();
    Ok(if query.is_empty() {
        query
    } else {
        format!("?{query}")
    })
}

/// Returns the time of the first line to return, to the second.
fn since(query: &Query) -> Result<Option<String>, Failure> {
    let text = query.first("sinceTime");
    if text.is_empty() {
        return Ok(None);
    }
    let time: Timestamp = text.parse().map_err(|_| {
        Failure::bad_request(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        ))
    })?;
    Ok(Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
}
