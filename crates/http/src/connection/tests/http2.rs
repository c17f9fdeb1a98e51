//! Responses over HTTP/2 as hyper's client reads them.

mod fairness;
mod floods;
mod frames;
mod h2spec;
mod watches;
mod windows;

use http::header::{AUTHORIZATION, CONTENT_LENGTH};
use http_body_util::Empty;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::TokioExecutor;

use super::*;

/// Opens a connection, whose tasks end with the set.
async fn connect() -> (SendRequest<Empty<Bytes>>, JoinSet<()>) {
    let (io, mut tasks) = serve(Protocol::Http2);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(io))
            .await
            .expect("HTTP/2");
    tasks.spawn(async move {
        connection.await.expect("a connection");
    });
    (sender, tasks)
}

#[tokio::test]
async fn an_answer_to_head_has_the_length_but_no_body() {
    let (mut sender, _tasks) = connect().await;
    for (path, length) in [("/whoami", Some("3")), ("/api/v1/pods?watch=1", None)] {
        let request = Request::head(format!("http://localhost{path}"))
            .header(AUTHORIZATION, "Bearer secret")
            .body(Empty::new())
            .expect("a request");
        let response = sender.send_request(request).await.expect("an answer");
        let stated = response.headers().get(CONTENT_LENGTH).cloned();
        assert_eq!(stated, length.map(HeaderValue::from_static), "{path}");
        let body = response.collect().await.expect("an end").to_bytes();
        assert!(body.is_empty(), "{path}: {body:?}");
    }
}
