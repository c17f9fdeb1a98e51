//! Headers and URLs, and HTTP/2 connections that end by chance.

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::DEFAULT_VERSIONS;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{ADMIN, Folder, anyone, ask, dial, port};

/// More requests than a connection has before one ends it by the largest chance: of 10^17 runs one would fail.
const REQUESTS_MAX: usize = 2_000;

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers() {
    let folder = Folder::new();
    let server = folder
        .serve(&["--cors-allowed-origins=^https://a\\.example$,//b\\.example(:|$)"])
        .await;
    let origin = |origin: &str| format!("Origin: {origin}\r\n");
    for (origin_header, allowed) in [
        (origin("https://a.example"), true),
        (origin("http://b.example:80"), true),
        (origin("https://a.example.org"), false),
        (String::new(), false),
    ] {
        for (credentials, status) in [(ADMIN, "200"), ("", "403")] {
            let headers = format!("{credentials}{origin_header}");
            let answer = ask(port(&server), "GET /api/v1/pods", &headers).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            let says = answer.contains("access-control-allow-origin: http");
            assert_eq!(says, allowed, "{origin_header}: {answer}");
        }
    }
    // A browser asks before it sends credentials.
    let headers = origin("https://a.example");
    let answer = ask(port(&server), "OPTIONS /api/v1/pods", &headers).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    for header in [
        "access-control-allow-origin: https://a.example\r\n",
        "access-control-allow-methods: POST, GET, OPTIONS, PUT, DELETE, PATCH\r\n",
        "access-control-allow-credentials: true\r\n",
        "access-control-expose-headers: Date\r\n",
    ] {
        assert!(answer.contains(header), "{answer}");
    }
    let answer = ask(port(&server), "OPTIONS /api/v1/pods", &origin("https://x")).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn all_responses_have_the_directives_of_transport_security() {
    let folder = Folder::new();
    let server = folder
        .serve(&["--strict-transport-security-directives=max-age=31536000,includeSubDomains"])
        .await;
    let header = "strict-transport-security: max-age=31536000; includeSubDomains\r\n";
    for (line, headers) in [
        ("GET /version", ""),
        ("GET /version", ADMIN),
        ("GET /nothing", ADMIN),
    ] {
        let answer = ask(port(&server), line, headers).await;
        assert!(answer.contains(header), "{line}: {answer}");
    }
    let server = folder.serve(&[]).await;
    let answer = ask(port(&server), "GET /version", ADMIN).await;
    assert!(!answer.contains("strict-transport-security"), "{answer}");
}

#[tokio::test]
async fn http2_connections_end_by_chance_and_lose_no_request() {
    let folder = Folder::new();
    let server = folder.serve(&["--goaway-chance=0.02"]).await;
    let mut config = anyone(DEFAULT_VERSIONS);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = dial(port(&server), "localhost", config).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    for number in 0..REQUESTS_MAX {
        let request = Request::get("https://localhost/version")
            .header("authorization", "Bearer secret")
            .body(Empty::<Bytes>::new())
            .unwrap();
        if sender.ready().await.is_err() {
            assert!(number > 0);
            // GOAWAY says that the connection ended in order.
            tasks.join_next().await.unwrap().unwrap().unwrap();
            return;
        }
        match sender.send_request(request).await {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                assert!(!response.headers().contains_key("connection"));
            }
            // Sent after GOAWAY, and so safe to repeat.
            Err(error) => assert!(number > 0, "{error}"),
        }
    }
    panic!("the connection did not end");
}

#[tokio::test]
async fn http1_connections_do_not_end_by_chance() {
    let folder = Folder::new();
    let server = folder
        .serve(&["--goaway-chance=0.02", "--disable-http2-serving"])
        .await;
    let answer = ask(port(&server), "GET /version", ADMIN).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The body of an answer.
fn json(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

#[tokio::test]
async fn urls_lead_to_the_external_host_name() {
    let folder = Folder::new();
    let server = folder.serve(&["--external-hostname=api.example"]).await;
    let port = port(&server);
    let answer = json(&ask(port, "GET /api", ADMIN).await);
    let address = &answer["serverAddressByClientCIDRs"][0]["serverAddress"];
    assert_eq!(address, &format!("api.example:{port}"));
    let answer = json(&ask(port, "GET /.well-known/openid-configuration", ADMIN).await);
    let keys = format!("https://api.example:{port}/openid/v1/jwks");
    assert_eq!(answer["jwks_uri"], keys);
}

#[tokio::test]
async fn clients_are_told_the_version_of_the_flag() {
    let folder = Folder::new();
    let server = folder.serve(&["--version=v1.36.2-mine"]).await;
    let answer = json(&ask(port(&server), "GET /version", ADMIN).await);
    assert_eq!(answer["gitVersion"], "v1.36.2-mine");
    let metrics = ask(port(&server), "GET /metrics", ADMIN).await;
    assert!(metrics.contains("git_version=\"v1.36.2-mine\""));
}
