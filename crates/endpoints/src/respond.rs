//! Responses with a body of a media type.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use ringwatch_http::{ResponseBody, full};

/// Responds with a body of a media type, which caches do not keep.
pub(crate) fn respond(
    code: StatusCode,
    media_type: &'static str,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Responds with plain text.
#[must_use]
pub fn plain(text: impl Into<Bytes>) -> Response<ResponseBody> {
    respond(StatusCode::OK, "text/plain; charset=utf-8", full(text))
}
