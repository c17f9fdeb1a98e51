//! Responses with documents and statuses in the negotiated encoding.

use http::header::{CONTENT_ENCODING, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use ringwatch_http::{ResponseBody, full};
use serde::Serialize;
use serde_json::Value;

use super::encoding::{GZIP_MIN_BYTES, GzipBody, indent, protobuf, yaml};
use super::errors::{Failure, TextError};
use super::negotiation::{Format, accepts_gzip};
use super::respond::respond;

/// Responds with any JSON document in a syntax. One of a kind that has no protobuf stays JSON.
///
/// # Errors
/// 500 when the document cannot be written, which a valid one can.
pub(super) fn document(
    code: StatusCode,
    format: Format,
    json: &[u8],
) -> Result<Response<ResponseBody>, Failure> {
    let body = match format {
        Format::Json => [json, b"\n"].concat(),
        Format::PrettyJson => indent(json),
        Format::Yaml => {
            let value: Value = serde_json::from_slice(json).map_err(Failure::internal)?;
            yaml(&value, json.len()).into_bytes()
        }
        Format::Protobuf => match protobuf(json).map_err(Failure::internal)? {
            Some(body) => body,
            None => return document(code, Format::Json, json),
        },
    };
    Ok(respond(code, format.media_type(), full(body)))
}

/// Responds with any serializable value, in a syntax.
///
/// # Errors
/// 500 when the document cannot be written, as [`document`].
pub(super) fn serialized(
    code: StatusCode,
    format: Format,
    value: &impl Serialize,
) -> Result<Response<ResponseBody>, Failure> {
    let json = serde_json::to_vec(value).map_err(Failure::internal)?;
    document(code, format, &json)
}

/// Returns the response to a failed request.
pub(super) fn failure(format: Format, failure: &Failure) -> Response<ResponseBody> {
    let code = failure.code();
    let mut response = serialized(code, format, failure.status()).unwrap_or_else(|_| {
        let json = serde_json::to_vec(failure.status()).unwrap_or_default();
        respond(code, "application/json", full(json))
    });
    if let Some(seconds) = failure.retry_after_seconds() {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Compresses a large answer to a read if the client accepts that.
pub(super) fn compress(
    request: &HeaderMap,
    response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let large = response.body().size_hint().lower() >= GZIP_MIN_BYTES;
    if !large || !accepts_gzip(request) {
        return response;
    }
    let mut response = response.map(|body| GzipBody::new(body).boxed_unsync());
    mark_compressed(&mut response);
    response
}

/// Adds the headers of an answer that is compressed.
pub(super) fn mark_compressed(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let vary = HeaderValue::from_static("Accept-Encoding");
    if !headers.get_all(VARY).iter().any(|known| known == vary) {
        headers.append(VARY, vary);
    }
}

/// Returns the 404 for an unknown path, in Go's words.
pub(super) fn page_not_found() -> Response<ResponseBody> {
    TextError::PageNotFound.response()
}
