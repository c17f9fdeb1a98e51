//! Responses with documents: negotiation of their encoding, ETags and caching.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use ringwatch_http::{ResponseBody, full};
use sha2::{Digest, Sha512};

use super::document::{Form, Syntax};
use crate::endpoints::errors;
use crate::endpoints::negotiation;
use crate::endpoints::respond::respond;

const JSON: &str = "application/json";

/// The media subtypes of v2 in protobuf: the current one and an older spelling.
const V2_PROTOBUF: [&str; 2] = [
    "com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "com.github.proto-openapi.spec.v2@v1.0+protobuf",
];
const V3_PROTOBUF: [&str; 2] = [
    "com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// Chooses the syntax of a document by the Accept header; `None` if neither is accepted.
pub(super) fn wanted(headers: &HeaderMap, form: Form) -> Option<Syntax> {
    let protobuf = match form {
        Form::V2 => V2_PROTOBUF,
        Form::V3 => V3_PROTOBUF,
    };
    negotiation::clauses(headers).iter().find_map(|clause| {
        if clause.accepts("application", &["json"]) {
            return Some(Syntax::Json);
        }
        clause
            .accepts("application", &protobuf)
            .then_some(Syntax::Protobuf)
    })
}

/// The expiry of documents that never change: a year, the most that caches honour.
const ALWAYS: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Answers with a document, or with 304 if the client has it. A document under its hash never changes, so it may be
/// kept for ever; caches that do not know `immutable` get an expiry.
pub(super) fn document(
    headers: &HeaderMap,
    form: Form,
    syntax: Syntax,
    hash: &str,
    hashed: Option<Timestamp>,
    content: Bytes,
) -> Response<ResponseBody> {
    let media_type = match (form, syntax) {
        (_, Syntax::Json) => JSON,
        (Form::V2, Syntax::Protobuf) => {
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        }
        (Form::V3, Syntax::Protobuf) => {
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
        }
    };
    let mut response = tagged(headers, media_type, hash, content);
    let answer = response.headers_mut();
    if form == Form::V2 {
        answer.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    answer.append(VARY, HeaderValue::from_static("Accept"));
    if let Some(now) = hashed {
        answer.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let end = now.saturating_add(ALWAYS).unwrap_or(now);
        let end = end.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        answer.extend(HeaderValue::try_from(end).map(|end| (EXPIRES, end)));
    }
    response
}

/// Answers with the index of the v3 documents: 200, or 304 if the client has it already.
pub(super) fn index(headers: &HeaderMap, content: Vec<u8>) -> Response<ResponseBody> {
    let digest = Sha512::digest(&content);
    let hash: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    tagged(headers, JSON, &hash, content.into())
}

/// Answers with content and its ETag, or with 304 if the client has it.
fn tagged(
    headers: &HeaderMap,
    media_type: &'static str,
    hash: &str,
    content: Bytes,
) -> Response<ResponseBody> {
    let etag = format!("\"{hash}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    let mut response = if known.any(|it| it.trim().trim_start_matches("W/") == etag) {
        let mut response = respond(StatusCode::NOT_MODIFIED, media_type, full(Bytes::new()));
        response.headers_mut().remove(CONTENT_TYPE);
        response
    } else {
        respond(StatusCode::OK, media_type, full(content))
    };
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Answers that the document is at another URL: 301.
pub(super) fn moved(url: &str) -> Response<ResponseBody> {
    let body = format!("<a href=\"{url}\">Moved Permanently</a>.\n\n");
    let code = StatusCode::MOVED_PERMANENTLY;
    let mut response = respond(code, "text/html; charset=utf-8", full(body));
    if let Ok(url) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, url);
    }
    response
}

/// Answers that the client accepts no form of the document: 406.
pub(super) fn not_acceptable() -> Response<ResponseBody> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = errors::NOT_ACCEPTABLE;
    response
}
