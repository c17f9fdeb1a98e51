//! Requests with documents as their bodies, and answers that are read to their end.

use std::fmt::Debug;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Builder;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use ringwatch_testing::eventually::DEADLINE;
use serde_json::Value;

/// Returns a request for a path.
pub(crate) fn get<B: From<Vec<u8>>>(path: &str) -> Request<B> {
    finish(Request::get(path), Vec::new())
}

/// Returns a request with a document, or without one if that is null.
pub(crate) fn request<B: From<Vec<u8>>>(
    method: impl AsRef<str>,
    path: &str,
    document: &Value,
) -> Request<B> {
    let request = Request::builder().method(method.as_ref()).uri(path);
    with_document(request, document)
}

/// Adds a document, or none if that is null, to a request. It is JSON, and that of a patch a merge patch, unless the
/// request already says what it is.
pub(crate) fn with_document<B: From<Vec<u8>>>(request: Builder, document: &Value) -> Request<B> {
    let is_said = request
        .headers_ref()
        .is_some_and(|it| it.contains_key(CONTENT_TYPE));
    let request = match request.method_ref() {
        _ if is_said => request,
        Some(&http::Method::PATCH) => request.header(CONTENT_TYPE, "application/merge-patch+json"),
        _ => request.header(CONTENT_TYPE, "application/json"),
    };
    let content = match document {
        Value::Null => Vec::new(),
        document => document.to_string().into_bytes(),
    };
    finish(request, content)
}

fn finish<B: From<Vec<u8>>>(request: Builder, content: Vec<u8>) -> Request<B> {
    request.body(content.into()).expect("a request")
}

/// Sends a request and reads its answer, whatever its status is, to the end.
pub(crate) async fn send(client: &Client, request: Request<Body>) -> Response<Bytes> {
    whole(client.send(request).await.expect("an answer")).await
}

/// Reads an answer to its end.
pub(crate) async fn whole<B>(answer: Response<B>) -> Response<Bytes>
where
    B: hyper::body::Body<Error: Debug>,
{
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Response::from_parts(head, body)
}

/// Returns the status and the document of an answer; null for a body that is none.
pub(crate) fn status_and_document(answer: &Response<Bytes>) -> (u16, Value) {
    let document = serde_json::from_slice(answer.body()).unwrap_or_default();
    (answer.status().as_u16(), document)
}

/// Returns the text at a path.
pub(crate) async fn text(client: &Client, path: &str) -> String {
    let text = client.request_text(get(path)).await;
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Sends a request and returns the text of the answer, or the code and the message of a refusal; the code is 0 if there
/// was no answer.
pub(crate) async fn text_or_refusal(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<String, (u16, String)> {
    let answer = tokio::time::timeout(DEADLINE, client.request_text(request)).await;
    answer.expect("in time").map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => (0, other.to_string()),
    })
}

/// Returns the code and the message of a refusal as a text.
#[track_caller]
pub(crate) fn refusal(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        error => panic!("{error:?}"),
    }
}
