//! The end of a server that turns requests away, and gives watches time.

use std::process::Command;

use ringwatch_testing::eventually::{DEADLINE, eventually};
use rustls::DEFAULT_VERSIONS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ADMIN, Folder, anyone, ask, dial, send};
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

/// The headers of an opening handshake of a WebSocket.
const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://localhost\r\n";
/// A close frame of RFC 6455 with the status 1000, a normal end.
const CLOSE_FRAME: &[u8] = &[0x88, 2, 0x03, 0xe8];

fn terminate(server: &Server) {
    let sent = Command::new("kill")
        .args(["-TERM", &server.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[tokio::test]
async fn requests_are_turned_away_until_those_in_progress_are_answered() {
    let folder = Folder::new();
    let flags = [
        "--storage-backend=memory",
        &folder.tokens(),
        "--shutdown-send-retry-after",
    ];
    let (mut server, _) = Server::ready(&flags).await;
    let port = server.port();
    let body = r#"{"metadata": {"name": "a"}}"#;
    let mut slow = dial(port, "localhost", anyone(DEFAULT_VERSIONS))
        .await
        .unwrap();
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n{ADMIN}\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let (first, rest) = body.split_at(5);
    slow.write_all(first.as_bytes()).await.unwrap();
    slow.flush().await.unwrap();
    let running = r#""verb":"create","path":"/api/v1/namespaces/default/configmaps""#;
    let runs = |answer: &str| answer.contains(running);
    until_answered(&server, "GET /debug/ui/state", runs).await;
    terminate(&server);
    let turned_away = |answer: &str| !answer.starts_with("HTTP/1.1 200");
    let answer = until_answered(&server, "GET /version", turned_away).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    for words in [
        "retry-after: 5\r\n",
        "connection: close\r\n",
        "The apiserver is shutting down, please try again later.\n",
    ] {
        assert!(answer.contains(words), "{answer}");
    }
    let answer = ask(port, "GET /readyz", ADMIN).await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    slow.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    server.ended().await;
}

/// Load balancers are told at once, also when the address cannot be withdrawn, since the store does not answer.
#[tokio::test]
async fn readiness_ends_before_the_address_is_withdrawn() {
    let Some(etcd) = Etcd::start("readiness_ends_before_the_address_is_withdrawn") else {
        return;
    };
    let folder = Folder::new();
    let flags = [
        "--etcd-servers",
        &etcd.endpoint(),
        &folder.tokens(),
        "--advertise-address=192.0.2.7",
    ];
    let (server, _) = Server::ready(&flags).await;
    // Else nothing would have to be withdrawn.
    let endpoints = "GET /api/v1/namespaces/default/endpoints/kubernetes";
    until_answered(&server, endpoints, |answer| answer.contains("192.0.2.7")).await;
    // The server tries to withdraw it for two seconds, then listens no more: a connection that is open already loses
    // none of them.
    let client = server.client_with_token("secret").await;
    let shutdown = async || client.request_text(requests::get("/readyz/shutdown")).await;
    shutdown().await.expect("not yet");
    // From here on it is to be withdrawn, though the server may still be starting.
    etcd.freeze();
    terminate(&server);
    eventually(
        DEADLINE,
        "the server says that it ends",
        async || match shutdown().await {
            Err(kube::Error::Api(status)) if status.code == 500 => Ok(()),
            other => Err(other),
        },
    )
    .await;
}

/// Asks until the answer is one of those that are waited for, and returns it.
async fn until_answered(server: &Server, line: &str, is_it: impl Fn(&str) -> bool) -> String {
    eventually(DEADLINE, line, async || {
        let answer = ask(server.port(), line, ADMIN).await;
        if is_it(&answer) {
            Ok(answer)
        } else {
            Err(answer)
        }
    })
    .await
}

#[tokio::test]
async fn watches_end_in_order_within_their_time() {
    let folder = Folder::new();
    let flags = [
        "--storage-backend=memory",
        &folder.tokens(),
        "--shutdown-watch-termination-grace-period=5s",
    ];
    let (mut server, _) = Server::ready(&flags).await;
    let line = "GET /api/v1/namespaces/default/configmaps?watch=1";
    let mut watches = Vec::new();
    for _ in 0..5 {
        let mut watch = dial(server.port(), "localhost", anyone(DEFAULT_VERSIONS))
            .await
            .unwrap();
        send(&mut watch, line, ADMIN).await;
        let mut head = [0; 12];
        watch.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        watches.push(watch);
    }
    let mut web_socket = dial(server.port(), "localhost", anyone(DEFAULT_VERSIONS))
        .await
        .unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{ADMIN}{HANDSHAKE}\r\n");
    web_socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    web_socket.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    server.stop().await;
    let mut rest = Vec::new();
    let _ = web_socket.read_to_end(&mut rest).await;
    assert!(rest.ends_with(CLOSE_FRAME), "{rest:?}");
    for mut watch in watches {
        let mut rest = String::new();
        let _ = watch.read_to_string(&mut rest).await;
        // The last chunk says that the stream is whole.
        assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
        assert!(!rest.contains("ERROR"), "{rest}");
    }
}
