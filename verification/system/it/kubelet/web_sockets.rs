//! Logs and watches over WebSockets, as browsers read them, and commands in containers.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const ORIGIN: &str = "Origin: https://127.0.0.1";
/// The path of a watch of one ConfigMap.
const WATCH: &str =
    "/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%3Da";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// Opens a WebSocket and returns it with the head of the answer.
async fn open(cluster: &Cluster, path: &str, headers: &str) -> (Socket, String) {
    let headers = format!("{HANDSHAKE}\r\n{headers}");
    let (stream, head) = cluster
        .raw(&format!("GET {path} HTTP/1.1"), headers.trim_end())
        .await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // What RFC 6455 gives as the answer to its sample key.
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    (
        WebSocketStream::from_raw_socket(stream, Role::Client, None).await,
        head,
    )
}

/// Reads the messages up to the server's close frame.
async fn messages(socket: &mut Socket) -> Vec<Message> {
    let mut all = Vec::new();
    let reading = async {
        while let Some(message) = socket.next().await {
            match message.expect("a message") {
                Message::Close(_) => break,
                other => all.push(other),
            }
        }
    };
    let read = tokio::time::timeout(DEADLINE, reading).await;
    read.expect("an end in time");
    all
}

/// Reads the next message.
async fn next(socket: &mut Socket) -> Message {
    let message = tokio::time::timeout(DEADLINE, socket.next()).await;
    let message = message.expect("in time").expect("a message");
    message.expect("a message")
}

#[tokio::test]
async fn logs_come_in_the_subprotocol_that_is_asked_for() {
    let cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let path = format!("{PODS}/p/log");
    for (protocols, chosen) in [
        ("", ""),
        ("Sec-WebSocket-Protocol: binary.k8s.io", "binary.k8s.io"),
        (
            "Sec-WebSocket-Protocol: other, base64.binary.k8s.io",
            "base64.binary.k8s.io",
        ),
    ] {
        let (mut socket, head) = open(&cluster, &path, protocols).await;
        let head = head.to_ascii_lowercase();
        let named = head.contains(&format!("sec-websocket-protocol: {chosen}\r\n"));
        assert_eq!(named, !chosen.is_empty(), "{head}");
        let messages = messages(&mut socket).await;
        let mut log = Vec::new();
        for message in &messages {
            match message {
                Message::Text(text) => log.extend(BASE64_STANDARD.decode(text.as_bytes()).unwrap()),
                other => log.extend_from_slice(&other.clone().into_data()),
            }
        }
        assert!(messages[0].is_empty(), "the first message greets");
        assert_eq!(messages[0].is_text(), chosen.starts_with("base64"));
        assert_eq!(String::from_utf8(log).unwrap(), "one\n\ntwo\n", "{chosen}");
    }
}

#[tokio::test]
async fn events_come_as_messages_of_their_own() {
    let cluster = Cluster::start(&[]).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster
        .create(maps, json!({"metadata": {"name": "a"}, "data": {"k": "1"}}))
        .await;
    let (mut socket, _) = open(&cluster, WATCH, ORIGIN).await;
    cluster
        .ask("DELETE", &format!("{maps}/a"), "")
        .await
        .expect("deleted");
    let events = [next(&mut socket).await, next(&mut socket).await];
    let types = events.iter().map(|message| {
        let event: Value = serde_json::from_str(message.to_text().expect("text")).expect("JSON");
        (
            event["type"].clone(),
            event["object"]["metadata"]["name"].clone(),
        )
    });
    let expected = [(json!("ADDED"), json!("a")), (json!("DELETED"), json!("a"))];
    assert_eq!(types.collect::<Vec<_>>(), expected);
    // Of what is gone there is nothing to tell up to the end.
    let path = format!("{WATCH}&timeoutSeconds=1");
    let (mut socket, _) = open(&cluster, &path, ORIGIN).await;
    assert_eq!(messages(&mut socket).await, [] as [Message; 0]);
}

#[tokio::test]
async fn events_in_protobuf_come_without_a_length() {
    let cluster = Cluster::start(&[]).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster
        .create(maps, json!({"metadata": {"name": "a"}}))
        .await;
    let accept = "Accept: application/vnd.kubernetes.protobuf;stream=watch";
    let (mut socket, _) = open(&cluster, WATCH, &format!("{ORIGIN}\r\n{accept}")).await;
    let Message::Binary(event) = next(&mut socket).await else {
        panic!("no binary message")
    };
    // Field 1 of a WatchEvent is its type.
    assert!(event.starts_with(b"\x0a\x05ADDED"), "{event:?}");
}

#[tokio::test]
async fn a_watch_ends_when_its_client_closes() {
    let cluster = Cluster::start(&[]).await;
    let (mut socket, _) = open(&cluster, WATCH, ORIGIN).await;
    let longer = "x".repeat(10_000);
    for ignored in [Message::text(longer), Message::Ping("p".into())] {
        socket.send(ignored).await.expect("sent");
    }
    socket.close(None).await.expect("closed");
    let answers = messages(&mut socket).await;
    assert_eq!(answers, [Message::Pong("p".into())]);
}

#[tokio::test]
async fn pages_authenticate_by_a_subprotocol_that_nobody_else_sees() {
    const TOKEN: &str = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let (log, exec) = (format!("{PODS}/p/log"), format!("{PODS}/p/exec?command=c"));
    let offers = async |path: &str, offered: String| {
        let headers = format!("{HANDSHAKE}\r\n{ORIGIN}\r\nSec-WebSocket-Protocol: {offered}");
        let request = format!("GET {path} HTTP/1.1");
        let (_, head) = cluster.raw_of_anybody(&request, &headers).await;
        head.to_ascii_lowercase()
    };
    for (path, other) in [(WATCH, "any"), (&log, "binary.k8s.io")] {
        let head = offers(path, format!("{TOKEN}, {other}")).await;
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        let chosen = format!("sec-websocket-protocol: {other}\r\n");
        assert!(head.contains(&chosen), "{head}");
        for offered in [TOKEN.to_owned(), format!("{TOKEN}x, {other}")] {
            let head = offers(path, offered).await;
            assert!(head.starts_with("http/1.1 401 "), "{head}");
        }
    }
    let head = offers(&exec, format!("v4.channel.k8s.io, {TOKEN}, other")).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    let asked = loop {
        let event = cluster.kubelet.next().await.to_ascii_lowercase();
        if event.contains("/exec/") {
            break event;
        }
    };
    let passed_on = "sec-websocket-protocol: v4.channel.k8s.io,other\r\n";
    assert!(asked.contains(passed_on), "{asked}");
    assert!(!asked.contains("bearer"), "{asked}");
}

#[tokio::test]
async fn handshakes_that_are_not_acceptable_are_refused() {
    let cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let log = format!("{PODS}/p/log");
    for (path, headers, status) in [
        (WATCH, HANDSHAKE.to_owned(), "403"),
        (WATCH, format!("{HANDSHAKE}\r\nOrigin: null"), "403"),
        (WATCH, format!("{HANDSHAKE}\r\nOrigin:"), "403"),
        (
            WATCH,
            format!("{}\r\n{ORIGIN}", HANDSHAKE.replace("13", "8")),
            "400",
        ),
        (
            WATCH,
            format!("{HANDSHAKE}\r\n{ORIGIN}\r\nSec-WebSocket-Protocol: a, b"),
            "400",
        ),
        (
            &log,
            format!("{HANDSHAKE}\r\nSec-WebSocket-Protocol: other"),
            "403",
        ),
    ] {
        let (_, head) = cluster.raw(&format!("GET {path} HTTP/1.1"), &headers).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path}: {head}"
        );
    }
}

/// Reads the messages of channels up to the server's close frame, those of a channel joined.
async fn channels(socket: &mut Socket) -> std::collections::BTreeMap<u8, Vec<u8>> {
    let mut channels = std::collections::BTreeMap::new();
    for message in messages(socket).await {
        if message.is_pong() {
            continue;
        }
        if let Some((channel, bytes)) = message.into_data().split_first() {
            let said: &mut Vec<u8> = channels.entry(*channel).or_default();
            said.extend_from_slice(bytes);
        }
    }
    channels
}

const V5: &str = "Sec-WebSocket-Protocol: v4.channel.k8s.io, v5.channel.k8s.io";

#[tokio::test]
async fn commands_are_translated_for_kubelets_that_speak_spdy() {
    let mut cluster = Cluster::with(StandIn::that_runs(false).await, &[]).await;
    cluster.pod("p", "worker").await;
    let exec = format!("{PODS}/p/exec?container=c");
    let path = format!("{exec}&command=cat&stdin=true&stdout=true&stderr=true");
    let (mut socket, head) = open(&cluster, &path, V5).await;
    assert!(
        head.to_lowercase()
            .contains("sec-websocket-protocol: v5.channel.k8s.io\r\n"),
        "{head}"
    );
    // Longer than any buffer on the way.
    let long = vec![b'x'; 5 << 20];
    for message in [
        Message::binary(&b"\0said "[..]),
        Message::text("\0as text "),
        Message::binary(&b"\0"[..]),
        Message::binary(&b"\x04{}"[..]),
        Message::binary(&b""[..]),
        Message::Ping("p".into()),
        Message::binary([b"\0", long.as_slice()].concat()),
        Message::binary(&b"\xff\0"[..]),
    ] {
        socket.send(message).await.expect("sent");
    }
    let channels_of = channels(&mut socket).await;
    let said = [b"said as text ", long.as_slice()].concat();
    assert!(channels_of[&1] == said, "{} bytes", channels_of[&1].len());
    let status: Value = serde_json::from_slice(&channels_of[&3]).expect("a status");
    assert_eq!(status, json!({"metadata": {}, "status": "Success"}));
    let asked = cluster.kubelet.next().await.to_lowercase();
    assert!(
        asked.starts_with("post /exec/default/p/c?command=cat&"),
        "{asked}"
    );
    assert!(
        asked.contains("x-stream-protocol-version: v4.channel.k8s.io\r\n"),
        "{asked}"
    );
    assert!(
        !asked.contains("authorization") && !asked.contains("websocket"),
        "{asked}"
    );

    let path = format!("{exec}&command=fail&stderr=true&tty=true");
    let (mut socket, _) = open(&cluster, &path, V5).await;
    let channels_of = channels(&mut socket).await;
    let status: Value = serde_json::from_slice(&channels_of[&3]).expect("a status");
    assert_eq!(
        status["details"]["causes"][0],
        json!({"reason": "ExitCode", "message": "3"})
    );
}

#[tokio::test]
async fn the_status_counts_that_a_kubelet_says_before_it_leaves() {
    let cluster = Cluster::with(StandIn::that_runs(false).await, &[]).await;
    cluster.pod("p", "worker").await;
    let path = format!("{PODS}/p/exec?container=c&command=leave&stdout=true&stderr=true");
    let (mut socket, _) = open(&cluster, &path, V5).await;
    let channels_of = channels(&mut socket).await;
    assert_eq!(channels_of[&2], b"it fails\n");
    let status: Value = serde_json::from_slice(&channels_of[&3]).expect("a status");
    assert_eq!(
        status["details"]["causes"][0],
        json!({"reason": "ExitCode", "message": "3"})
    );
}

#[tokio::test]
async fn a_web_socket_is_opened_by_get_alone() {
    let cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    for (path, protocol) in [
        ("exec?command=c", "v5.channel.k8s.io"),
        ("portforward?ports=80", "SPDY/3.1+portforward.k8s.io"),
    ] {
        let headers = format!("{HANDSHAKE}\r\nSec-WebSocket-Protocol: {protocol}");
        let request = format!("POST {PODS}/p/{path} HTTP/1.1");
        let (_, head) = cluster.raw(&request, &headers).await;
        assert!(head.starts_with("HTTP/1.1 405 "), "{path}: {head}");
    }
}

#[tokio::test]
async fn what_a_kubelet_says_instead_of_running_comes_as_a_status() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let path = format!("{PODS}/p/attach?stdout=true");
    let (mut socket, _) = open(&cluster, &path, V5).await;
    let channels_of = channels(&mut socket).await;
    let status: Value = serde_json::from_slice(&channels_of[&3]).expect("a status");
    let message = "Internal error occurred: unable to upgrade connection: not now";
    assert_eq!(
        (&status["message"], &status["code"]),
        (&json!(message), &json!(500))
    );
    assert!(
        channels_of[&1].is_empty(),
        "the first message shows that there is a connection"
    );
    cluster.kubelet.next().await;

    // What is spoken in other protocols, or with a kubelet that takes these, is none of the server's business.
    let other = format!("{HANDSHAKE}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io");
    let (_, head) = cluster.raw(&format!("GET {path} HTTP/1.1"), &other).await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    cluster.worker_takes_web_sockets().await;
    let passed_on = format!("{HANDSHAKE}\r\n{V5}");
    let (_, head) = cluster
        .raw(&format!("GET {path} HTTP/1.1"), &passed_on)
        .await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
}

#[tokio::test]
async fn ports_are_forwarded_within_web_sockets() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let path = format!("{PODS}/p/portforward?ports=80");
    let protocol = "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io";
    let (mut socket, _) = open(&cluster, &path, protocol).await;
    socket
        .send(Message::binary(&b"said"[..]))
        .await
        .expect("sent");
    let mut heard = Vec::new();
    while heard.len() < 9 {
        heard.extend(next(&mut socket).await.into_data());
    }
    assert_eq!(heard, b"earlysaid");
    let asked = cluster.kubelet.next().await.to_lowercase();
    assert!(asked.starts_with("post /portforward/default/p"), "{asked}");
    assert!(
        asked.contains("x-stream-protocol-version: portforward.k8s.io\r\n"),
        "{asked}"
    );
}
