//! Responses with OpenAPI documents: negotiation of their encoding, ETags and caching.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use ringwatch::clock::Clock;
use ringwatch_http::{ResponseBody, full};
use ringwatch_openapi::{
    Document, Documents, OpenApi, OpenApiVersion, ServedParts, Syntax, V2, V3,
};
use ringwatch_registry::Store;

use super::api_config::ApiConfig;
use super::errors;
use super::params::Query;
use super::respond::respond;
use super::{negotiation, response};

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

/// Answers requests for documents.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenApiEndpoint<'a> {
    pub(super) api: &'a OpenApi,
    /// The cached documents.
    pub(super) documents: &'a Documents,
    pub(super) clock: &'a Clock,
}

impl OpenApiEndpoint<'_> {
    /// Answers a request for a document.
    pub(super) async fn answer(
        self,
        method: &Method,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
    ) -> Response<ResponseBody> {
        // kube-apiserver answers without looking at the method, but for what the client has already.
        let now = self.clock.wall();
        let response = if path == V2 {
            self.v2(headers).await
        } else {
            match path.trim_start_matches(V3).trim_matches('/') {
                "" => index(self.api.index().await),
                root => self.v3(root, query, headers).await,
            }
        };
        unless_known(method, headers, with_time(response, now))
    }

    async fn v2(self, headers: &HeaderMap) -> Response<ResponseBody> {
        let Some(syntax) = wanted(headers, OpenApiVersion::V2) else {
            return not_acceptable(OpenApiVersion::V2);
        };
        let made = self.api.v2(self.documents, syntax).await;
        document(OpenApiVersion::V2, syntax, made, None)
    }

    async fn v3(self, path: &str, query: &Query, headers: &HeaderMap) -> Response<ResponseBody> {
        let Some(version) = self.api.v3(path) else {
            return response::page_not_found();
        };
        let Some(syntax) = wanted(headers, OpenApiVersion::V3) else {
            return not_acceptable(OpenApiVersion::V3);
        };
        let hash = version.hash().await;
        let asked = Some(query.first("hash")).filter(|asked| !asked.is_empty());
        if asked.is_some_and(|asked| asked != hash) {
            return moved(&version.url(&hash));
        }
        let content = version.content(self.documents, &hash, syntax).await;
        let now = asked.map(|_| self.clock.wall());
        document(OpenApiVersion::V3, syntax, Document { hash, content }, now)
    }
}

/// Returns the OpenAPI documents of these stores and the resources without one.
pub(super) fn describe(
    config: &ApiConfig,
    stores: &[Arc<Store>],
    remote: BTreeMap<String, String>,
) -> OpenApi {
    let version = &config.version;
    let described = ServedParts {
        stores,
        storeless: &config.storeless,
        paths: &config.extra_root_paths,
        build: &version.git_version,
        kubernetes: &format!("{}.{}", version.major, version.minor),
    };
    OpenApi::new(described, remote)
}

/// Returns true if answers to a path are compressed for clients that accept it. kube-apiserver does not compress
/// the documents of v3.
pub(super) fn is_compressed(path: &str) -> bool {
    path == V2 || !OpenApi::has(path)
}

/// Chooses the syntax of a document by the Accept header; `None` if neither is accepted.
fn wanted(headers: &HeaderMap, form: OpenApiVersion) -> Option<Syntax> {
    let protobuf = match form {
        OpenApiVersion::V2 => V2_PROTOBUF,
        OpenApiVersion::V3 => V3_PROTOBUF,
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

/// Answers with a document. A document under its hash never changes, so it may be kept for ever; caches that do not
/// know `immutable` get an expiry.
fn document(
    form: OpenApiVersion,
    syntax: Syntax,
    document: Document,
    hashed: Option<Timestamp>,
) -> Response<ResponseBody> {
    let media_type = match (form, syntax) {
        (_, Syntax::Json) => JSON,
        (OpenApiVersion::V2, Syntax::Protobuf) => {
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        }
        (OpenApiVersion::V3, Syntax::Protobuf) => {
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
        }
    };
    let mut response = tagged(media_type, &document.hash, document.content);
    vary(&mut response, form);
    let answer = response.headers_mut();
    if let Some(now) = hashed {
        answer.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let end = now.saturating_add(ALWAYS).unwrap_or(now);
        answer.extend(HeaderValue::try_from(http_time(end)).map(|end| (EXPIRES, end)));
    }
    response
}

/// Answers with the index of the v3 documents, whose media type kube-apiserver has Go's library guess.
fn index(content: Vec<u8>) -> Response<ResponseBody> {
    let media_type = "text/plain; charset=utf-8";
    respond(StatusCode::OK, media_type, full(content))
}

/// Adds what Go's library tells about content that it serves: that a part of it may be asked for, which is not heeded
/// here, and the time of its last change, which is now.
fn with_time(mut response: Response<ResponseBody>, now: Timestamp) -> Response<ResponseBody> {
    if response.status() == StatusCode::OK {
        let answer = response.headers_mut();
        answer.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let now = HeaderValue::try_from(http_time(now));
        answer.extend(now.map(|now| (LAST_MODIFIED, now)));
    }
    response
}

fn http_time(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Adds the headers of requests on which a document depends.
fn vary(response: &mut Response<ResponseBody>, form: OpenApiVersion) {
    let answer = response.headers_mut();
    if form == OpenApiVersion::V2 {
        answer.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    answer.append(VARY, HeaderValue::from_static("Accept"));
}

/// Answers with content and its ETag.
fn tagged(media_type: &'static str, hash: &str, content: Bytes) -> Response<ResponseBody> {
    let mut response = respond(StatusCode::OK, media_type, full(content));
    if let Ok(etag) = HeaderValue::try_from(format!("\"{hash}\"")) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Answers that a client has the content already, if it says so: 304, or 412 if it does not read. Follows Go's
/// `http.ServeContent`.
fn unless_known(
    method: &Method,
    headers: &HeaderMap,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let etag = response.headers().get(ETAG);
    let is_known = |known: &str| {
        let weak = known.trim().trim_start_matches("W/").as_bytes();
        weak == b"*" || etag.is_some_and(|etag| etag.as_bytes() == weak)
    };
    let known = headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    if response.status() != StatusCode::OK || !known.any(is_known) {
        return response;
    }
    let has_tag = etag.is_some();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    *response.status_mut() = if reads {
        StatusCode::NOT_MODIFIED
    } else {
        errors::PRECONDITION_FAILED
    };
    *response.body_mut() = full(Bytes::new());
    let answer = response.headers_mut();
    answer.remove(ACCEPT_RANGES);
    // Go's library guesses the type of what has no tag when it writes it.
    if reads || !has_tag {
        answer.remove(CONTENT_TYPE);
    }
    if reads && has_tag {
        answer.remove(LAST_MODIFIED);
    }
    response
}

/// Answers that the document is at another URL: 301.
fn moved(url: &str) -> Response<ResponseBody> {
    let body = format!("<a href=\"{url}\">Moved Permanently</a>.\n\n");
    let code = StatusCode::MOVED_PERMANENTLY;
    let mut response = respond(code, "text/html; charset=utf-8", full(body));
    if let Ok(url) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, url);
    }
    response
}

/// Answers that the client accepts no form of the document: 406.
fn not_acceptable(form: OpenApiVersion) -> Response<ResponseBody> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = errors::NOT_ACCEPTABLE;
    vary(&mut response, form);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_has_is_not_sent_again() {
        let answer = |method: Method, known: &'static str, tag: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(known));
            let content = Bytes::from_static(b"{}");
            let response = if tag.is_empty() {
                index(content.to_vec())
            } else {
                tagged(JSON, tag, content)
            };
            let response = with_time(response, Timestamp::UNIX_EPOCH);
            let response = unless_known(&method, &headers, response);
            let has = |name| response.headers().contains_key(name);
            let shown = [CONTENT_TYPE, LAST_MODIFIED, ETAG, ACCEPT_RANGES].map(has);
            (response.status().as_u16(), shown)
        };
        let (yes, no) = (true, false);
        for known in ["\"a\"", "\"b\", W/\"a\"", "*"] {
            assert_eq!(answer(Method::GET, known, "a"), (304, [no, no, yes, no]));
            assert_eq!(
                answer(Method::PATCH, known, "a"),
                (412, [yes, yes, yes, no])
            );
        }
        assert_eq!(answer(Method::HEAD, "\"b\"", "a"), (200, [yes; 4]));
        assert_eq!(answer(Method::GET, "*", ""), (304, [no, yes, no, no]));
        assert_eq!(answer(Method::POST, "*", ""), (412, [no, yes, no, no]));
        assert_eq!(answer(Method::GET, "\"a\"", ""), (200, [yes, yes, no, yes]));
    }
}
