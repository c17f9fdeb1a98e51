//! The types of request and response bodies, and plain responses.

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use ringwatch::clock::Instant;

/// An error of a body: the transport's own.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// The body of a response.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Marks a response, in its extensions, as a watch: its body sends events as they occur.
#[derive(Clone, Copy, Debug)]
pub struct EventStream {
    /// The latest time at which the body ends.
    pub deadline: Instant,
}

/// Returns a body of known content.
#[must_use]
pub fn full(content: impl Into<Bytes>) -> ResponseBody {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns a body whose content comes in pieces. It is cut off, visibly for the client, at the first error.
pub fn streamed(
    pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> ResponseBody {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
}

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
