//! Logs, upgrades and proxies through a relay, which joins connections as its upstream does.

use super::streams::Looking;
use super::*;

async fn relay(cluster: &Cluster) -> Server {
    let mut relay = Server::relay(&cluster.server.kubeconfig(), &[]);
    relay.client().await;
    relay
}

#[tokio::test]
async fn upgraded_connections_are_joined_through_a_relay() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let relay = relay(&cluster).await;
    let headers = format!("Authorization: Bearer secret\r\n{UPGRADE}");
    let exec = format!("POST {PODS}/p/exec?command=sh&command=-c&stdin=true&stdout=1 HTTP/1.1");
    let (stream, answer) = raw(&relay, &exec, &headers).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    let switched = answer.to_lowercase().contains("upgrade: spdy/3.1");
    assert!(switched, "{answer}");
    expect_echo(&mut cluster, stream).await;
    for (request, credentials, status) in [
        (format!("GET {PODS}/p/attach HTTP/1.1"), "secret", "403"),
        (
            format!("GET {PODS}/none/exec?command=sh&stdout=1 HTTP/1.1"),
            "secret",
            "404",
        ),
        (exec, "wrong", "401"),
    ] {
        let headers = format!("Authorization: Bearer {credentials}\r\n{UPGRADE}");
        let (_, direct) = raw(&cluster.server, &request, &headers).await;
        let (_, through) = raw(&relay, &request, &headers).await;
        assert!(
            direct.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {direct}"
        );
        let line = |head: &str| head.lines().next().map(str::to_owned);
        assert_eq!(line(&through), line(&direct), "{request}");
    }
}

#[tokio::test]
async fn kubectl_looks_into_containers_through_a_relay() {
    for web_sockets in [true, false] {
        for mut looking in Looking::start("exec through a relay", web_sockets).await {
            // Its user has a certificate, for whom the relay acts.
            let relay = relay(&looking.cluster).await;
            looking.kubeconfig = relay.kubeconfig();
            looking.looks_into_a_container().await;
            if !web_sockets {
                looking.forwards_a_port().await;
            }
        }
    }
}

#[tokio::test]
async fn nodes_are_proxied_through_a_relay_and_logs_flow() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let mut relay = relay(&cluster).await;
    let client = relay.client().await;
    let text = async |path: &str| {
        let answer = requests::text_or_refusal(&client, requests::get(path)).await;
        answer.expect("an answer")
    };
    assert_eq!(
        text("/api/v1/nodes/worker/proxy/any/path?a=b").await,
        "one\n\ntwo\n"
    );
    let asked = cluster.kubelet.next().await;
    assert!(
        asked.starts_with("GET /any/path?a=b HTTP/1.1\r\n"),
        "{asked}"
    );
    assert_eq!(cluster.kubelet.next().await, "closed");
    assert_eq!(text(&format!("{PODS}/p/log")).await, "one\n\ntwo\n");
    cluster.kubelet.next().await;
    assert_eq!(cluster.kubelet.next().await, "closed");

    let headers = "Authorization: Bearer secret";
    let request = format!("GET {PODS}/p/log?follow=true HTTP/1.1");
    let (mut stream, head) = raw(&relay, &request, headers).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(cluster.kubelet.next().await.contains("follow=true"));
    for _ in 0..3 {
        cluster.kubelet.lines.add_permits(1);
        let mut read = Vec::new();
        let line = async {
            while !read.ends_with(b"line\n\r\n") {
                read.push(stream.read_u8().await.expect("a line that flows"));
            }
        };
        tokio::time::timeout(DEADLINE, line).await.expect("in time");
    }
    drop(stream);
    assert_eq!(cluster.kubelet.next().await, "closed");
}

#[tokio::test]
async fn a_watch_over_a_web_socket_is_answered_by_a_relay() {
    let cluster = Cluster::start(&[]).await;
    let relay = relay(&cluster).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    cluster.create(maps, map).await;
    let headers = "Authorization: Bearer secret\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://127.0.0.1";
    let request = format!("GET {maps}?watch=true HTTP/1.1");
    for server in [&cluster.server, &relay] {
        let (mut stream, head) = raw(server, &request, headers).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let mut sent = Vec::new();
        let told = async {
            let has = |sent: &[u8], words: &str| String::from_utf8_lossy(sent).contains(words);
            while !has(&sent, "ADDED") || !has(&sent, "\"name\":\"a\"") {
                sent.push(stream.read_u8().await.expect("an event"));
            }
        };
        tokio::time::timeout(DEADLINE, told).await.expect("in time");
    }
}
