//! HTTP/1.1 as its clients write it, byte for byte, around watches that are written without hyper.

mod http2;
mod unauthenticated;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::task::JoinSet;

use super::*;
use crate::body::{RequestBody, ResponseBody, full};
use crate::testing::{self, Handler};

/// A server that has something to say is not waited for longer.
const SECONDS_MAX: u64 = 30;

/// The body of the stub's watch.
const EVENTS: &str = "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n";

/// A watch of two events, or the user's name.
struct Stub;

#[async_trait]
impl Handler for Stub {
    async fn handle(&self, request: Request<RequestBody>, user: &str) -> Response<ResponseBody> {
        if request.uri().path() != "/api/v1/pods" {
            return Response::new(full(user.to_owned()));
        }
        let events =
            ["one\n", "two\n"].map(|event| Ok(Frame::data(Bytes::from_static(event.as_bytes()))));
        let body = StreamBody::new(futures::stream::iter(events));
        let mut response = Response::new(body.boxed_unsync());
        let deadline = Clock::real().now() + Duration::from_secs(SECONDS_MAX);
        response.extensions_mut().insert(EventStream {
            deadline,
            shared: None,
        });
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

/// Serves a connection until the tasks are dropped and returns the client's end.
fn serve(protocol: Protocol) -> (DuplexStream, JoinSet<()>) {
    let (io, server) = tokio::io::duplex(64 << 10);
    let connections = testing::connections(
        Arc::new(Stub),
        &Ledger::unlimited(),
        &testing::certificates(),
    );
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        connections.serve_http(server, protocol).await;
    });
    (io, tasks)
}

struct Client {
    io: DuplexStream,
    _server: JoinSet<()>,
}

impl Client {
    fn connect() -> Self {
        let (io, server) = serve(Protocol::Http1);
        Self {
            io,
            _server: server,
        }
    }

    /// Sends requests in one piece; each is a request line and further header lines.
    async fn send(&mut self, requests: &[&str]) {
        let mut text = String::new();
        for request in requests {
            let (line, headers) = request.split_once('\n').unwrap_or((request, ""));
            text +=
                &format!("{line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\n");
            for header in headers.lines() {
                text += &format!("{header}\r\n");
            }
            text += "\r\n";
        }
        self.io.write_all(text.as_bytes()).await.expect("sent");
    }

    /// Reads until something has come.
    async fn read(&mut self, until: &str) -> String {
        let mut text = Vec::new();
        let reading = async {
            while !text.ends_with(until.as_bytes()) {
                text.push(self.io.read_u8().await.expect("a byte"));
            }
        };
        let at_most = Duration::from_secs(SECONDS_MAX);
        let read = tokio::time::timeout(at_most, reading).await;
        let text = String::from_utf8(text).expect("text");
        assert!(read.is_ok(), "only this came: {text}");
        text
    }

    /// Reads until the server closes the connection.
    async fn rest(mut self) -> String {
        let mut text = String::new();
        let at_most = Duration::from_secs(SECONDS_MAX);
        let read = tokio::time::timeout(at_most, self.io.read_to_string(&mut text)).await;
        read.expect("an end").expect("text");
        text
    }
}

const WATCH: &str = "GET /api/v1/pods?watch=1";

#[tokio::test]
async fn a_connection_goes_on_after_a_watch() {
    let mut client = Client::connect();
    for _ in 0..2 {
        client.send(&[WATCH]).await;
        let answer = client.read(EVENTS).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(!answer.contains("connection:"), "{answer}");
        client.send(&["GET /whoami"]).await;
        let answer = client.read("ann").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn the_head_of_a_watch_has_no_body() {
    let mut client = Client::connect();
    client.send(&["HEAD /api/v1/pods?watch=1"]).await;
    client.send(&["GET /whoami"]).await;
    let answers = client.read("ann").await;
    assert_eq!(
        answers.matches("HTTP/1.1 200 OK\r\n").count(),
        2,
        "{answers}"
    );
    assert!(!answers.contains("one"), "{answers}");
}

#[tokio::test]
async fn a_client_that_wants_the_connection_closed_is_told_so() {
    for wish in ["close", "Keep-Alive, CLOSE"] {
        let mut client = Client::connect();
        let request = format!("{WATCH}\nconnection: {wish}");
        client.send(&[&request]).await;
        let answer = client.rest().await;
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(answer.ends_with(EVENTS), "{answer}");
    }
}

#[tokio::test]
async fn a_request_that_is_sent_behind_a_watch_is_to_be_sent_elsewhere() {
    let mut client = Client::connect();
    client.send(&[WATCH, "GET /whoami"]).await;
    let answer = client.rest().await;
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.ends_with(EVENTS), "{answer}");
}

#[tokio::test]
async fn a_body_that_was_announced_is_not_taken_for_a_request() {
    let mut client = Client::connect();
    let request = format!("{WATCH}\nexpect: 100-continue\ncontent-length: 4");
    client.send(&[&request]).await;
    let answer = client.rest().await;
    assert!(answer.ends_with(EVENTS), "{answer}");
}

/// A request with a fragment would mean another resource than was written, and the others another body or host to a
/// proxy.
#[tokio::test]
async fn heads_that_two_servers_take_for_different_requests_are_refused() {
    for (request, code) in [
        ("GET /whoami#x", 400),
        ("DELETE /api/v1/namespaces/a/secrets#/s0?dryRun=All", 400),
        ("GET /whoami\nhost: other", 400),
        ("POST /whoami\ntransfer-encoding: gzip, chunked", 501),
        (
            "POST /whoami\ntransfer-encoding: chunked\ntransfer-encoding: chunked",
            501,
        ),
    ] {
        let mut client = Client::connect();
        client.send(&["GET /whoami"]).await;
        client.read("ann").await;
        client.send(&[request]).await;
        let answer = client.rest().await;
        let head = format!("HTTP/1.1 {code} ");
        assert!(answer.starts_with(&head), "{request}: {answer}");
        assert!(
            answer.to_lowercase().contains("connection: close"),
            "{answer}"
        );
    }
    let mut client = Client::connect();
    client.send(&["GET /whoami\nreferer: /#x"]).await;
    client.read("ann").await;
}
