//! Responses that the filters give themselves, in kube-apiserver's words.

use http::header::{CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response};
use ringwatch_endpoints::{Metrics, Refusal, RequestInfo, TextError};
use ringwatch_http::{ResponseBody, full};

/// Responds with a refusal as a Status, and Retry-After if it says so.
pub(super) fn refused(refusal: &Refusal) -> Response<ResponseBody> {
    let mut body = serde_json::to_vec(&refusal.status()).unwrap_or_default();
    body.push(b'\n');
    let mut response = Response::new(full(body));
    *response.status_mut() = refusal.code();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(refusal, Refusal::Ending | Refusal::NobodyImpersonated(_)) {
        let no_sniff = HeaderValue::from_static("nosniff");
        headers.insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
    }
    if let Some(seconds) = refusal.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Refuses a request because there are too many, and counts it.
pub(super) fn too_many(metrics: &Metrics, info: &RequestInfo) -> Response<ResponseBody> {
    let response = TextError::TooManyRequests.response();
    metrics.terminate(info, response.status().as_u16());
    response
}
