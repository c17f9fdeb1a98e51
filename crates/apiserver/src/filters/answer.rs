//! Responses that the filters give themselves, in kube-apiserver's words.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use crate::endpoints::{Refusal, ResponseBody, full};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Responds with a refusal as a Status, and Retry-After if it says so.
pub(super) fn refused(refusal: &Refusal) -> Response<ResponseBody> {
    let mut body = serde_json::to_vec(&refusal.status()).unwrap_or_default();
    body.push(b'\n');
    let mut response = response(refusal.code(), JSON, body);
    if let Some(seconds) = refusal.retry_after_seconds() {
        let after = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, after);
    }
    response
}

/// Responds with plain text.
#[must_use]
pub fn plain(text: impl Into<Vec<u8>>) -> Response<ResponseBody> {
    response(StatusCode::OK, TEXT, text.into())
}

fn response(code: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
