//! The answers that the server gives itself, in kube-apiserver's words.

use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use ringwatch::meta::Status;

use crate::endpoints::{ResponseBody, full};

/// When a client that was turned away may come again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A Status with its code.
pub(super) fn status(status: &Status) -> Response<ResponseBody> {
    let code = status
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = serde_json::to_vec(status).unwrap_or_default();
    body.push(b'\n');
    response(code, JSON, body, &[])
}

/// The same for whoever may come again.
pub(super) fn come_again(status: &Status, seconds: u32) -> Response<ResponseBody> {
    let mut response = self::status(status);
    let after = HeaderValue::from(seconds);
    response.headers_mut().insert(RETRY_AFTER, after);
    response
}

/// A text for people, as it is.
#[must_use]
pub fn plain(text: impl Into<Vec<u8>>) -> Response<ResponseBody> {
    response(StatusCode::OK, TEXT, text.into(), &[])
}

pub use crate::endpoints::error_text;

/// Too many requests are in progress.
pub(super) fn too_many_requests() -> Response<ResponseBody> {
    let mut response = error_text(
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests, please try again later.",
    );
    response
        .headers_mut()
        .insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    response
}

/// The request hit a fault of this program.
pub(super) fn panicked() -> Response<ResponseBody> {
    error_text(
        StatusCode::INTERNAL_SERVER_ERROR,
        "This request caused apiserver to panic. Look in the logs for details.",
    )
}

fn response(
    code: StatusCode,
    content_type: HeaderValue,
    body: Vec<u8>,
    headers: &[(HeaderName, HeaderValue)],
) -> Response<ResponseBody> {
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    for (name, value) in headers {
        response.headers_mut().insert(name, value.clone());
    }
    response
}
