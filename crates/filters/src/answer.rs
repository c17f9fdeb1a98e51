//! Responses that the filters give themselves, in kube-apiserver's words.

use http::header::{RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response};
use ringwatch_endpoints::{self as endpoints, Metrics, Refusal, RequestInfo, TextError};
use ringwatch_http::ResponseBody;

/// Responds with a refusal as a Status in JSON, and Retry-After if it says so.
pub(super) fn refused(refusal: &Refusal) -> Response<ResponseBody> {
    refused_to(refusal, &HeaderMap::new(), "")
}

/// Responds with a refusal as [`refused`], to a request with these headers and this query.
pub(super) fn refused_to(
    refusal: &Refusal,
    headers: &HeaderMap,
    query: &str,
) -> Response<ResponseBody> {
    let mut response = endpoints::refused(refusal, headers, query);
    let headers = response.headers_mut();
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
