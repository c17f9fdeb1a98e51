//! Requests that kubelets and pods answer, against a stand-in: logs, upgrades, proxies, and what goes wrong
//! on the way.

mod container;
mod proxies;
mod relayed;
mod spdy;
mod stand_in;
mod streams;
mod web_sockets;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use ringwatch_testing::eventually::DEADLINE;
use ringwatch_testing::reserved_port::ReservedPort;
use ringwatch_tls::tls_client::{self, Trust};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use self::stand_in::StandIn;
use crate::support::requests;
use crate::support::server::Server;
use crate::support::tls_server::head;
use crate::support::tools::{self, skipped};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The headers of a client that asks for SPDY.
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1";

/// A server, and a kubelet that is its node `worker`.
struct Cluster {
    server: Server,
    client: kube::Client,
    kubelet: StandIn,
}

impl Cluster {
    async fn start(flags: &[&str]) -> Self {
        Self::with(StandIn::start().await, flags).await
    }

    async fn with(kubelet: StandIn, flags: &[&str]) -> Self {
        let tokens = tempfile::NamedTempFile::new().expect("a file");
        fs::write(tokens.path(), "secret,admin,1,system:masters").expect("written");
        let tokens = tokens.path().display().to_string();
        let (server, client) =
            Server::ready(&[&["--token-auth-file", &tokens], flags].concat()).await;
        let cluster = Self {
            server,
            client,
            kubelet,
        };
        cluster.node("worker", cluster.kubelet.address.port()).await;
        cluster
    }

    async fn node(&self, name: &str, port: u16) {
        self.node_at(name, "127.0.0.1", port).await;
    }

    async fn node_at(&self, name: &str, address: &str, port: u16) {
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        let node = json!({"metadata": {"name": name}, "status": {"addresses": addresses,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        self.create("/api/v1/nodes", node).await;
    }

    async fn pod(&self, name: &str, node: &str) {
        let containers = json!([{"name": "c", "image": "i"}]);
        let pod = json!({"metadata": {"name": name},
            "spec": {"nodeName": node, "containers": containers}});
        self.create(PODS, pod).await;
    }

    async fn create(&self, path: &str, object: Value) {
        let request = requests::request("POST", path, &object);
        let created = self.client.request_text(request).await;
        created.expect("created");
    }

    async fn patch(&self, path: &str, patch: &Value) {
        let request = requests::request("PATCH", path, patch);
        let patched = self.client.request_text(request).await;
        patched.expect("patched");
    }

    /// Has the kubelet declare that it takes WebSockets which the server translates for others.
    async fn worker_takes_web_sockets(&self) {
        let features = json!({"status": {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}});
        self.patch("/api/v1/nodes/worker/status", &features).await;
    }

    async fn get(&self, path: &str) -> Result<String, (u16, String)> {
        self.ask("GET", path, "").await
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Result<String, (u16, String)> {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.body(body.as_bytes().to_vec()).expect("a request");
        requests::text_or_refusal(&self.client, request).await
    }

    /// A connection of our own, and the head of the answer to a request over it.
    async fn raw(&self, request: &str, headers: &str) -> (TlsStream<TcpStream>, String) {
        let headers = format!("Authorization: Bearer secret\r\n{headers}");
        self.raw_of_anybody(request, &headers).await
    }

    /// Sends a request as `raw` does, without credentials but those in the headers.
    async fn raw_of_anybody(&self, request: &str, headers: &str) -> (TlsStream<TcpStream>, String) {
        raw(&self.server, request, headers).await
    }
}

/// Opens a connection to a server, and returns it with the head of the answer to a request over it.
async fn raw(server: &Server, request: &str, headers: &str) -> (TlsStream<TcpStream>, String) {
    let tls = tls_client::config(Trust::Anyone, None).expect("no files");
    let kubeconfig = fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let (_, port) = kubeconfig.split_once("127.0.0.1:").expect("a URL");
    let digits = port.split(|character: char| !character.is_ascii_digit());
    let port: u16 = digits.clone().next().unwrap().parse().expect("a port");
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connected = TlsConnector::from(tls).connect(name, tcp.expect("tcp"));
    let mut stream = connected.await.expect("a connection");
    let request = format!("{request}\r\nHost: x\r\n{headers}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let head = tokio::time::timeout(DEADLINE, head(&mut stream)).await;
    (stream, head.expect("in time").expect("a head"))
}

#[tokio::test]
async fn logs_come_from_the_kubelet() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let log = format!("{PODS}/p/log");
    assert_eq!(cluster.get(&log).await, Ok("one\n\ntwo\n".to_owned()));
    let asked = cluster.kubelet.next().await;
    assert!(
        asked.starts_with("GET /containerLogs/default/p/c HTTP/1.1\r\n"),
        "{asked}"
    );
    assert_eq!(cluster.kubelet.next().await, "closed");
    let query = "timestamps=true&tailLines=3&sinceSeconds=9&limitBytes=7&previous=1&pretty=1\
        &follow=false&insecureSkipTLSVerifyBackend=true";
    cluster.get(&format!("{log}?{query}")).await.expect("a log");
    let asked = cluster.kubelet.next().await;
    let path = "/containerLogs/default/p/c?limitBytes=7&previous=true&sinceSeconds=9&tailLines=3\
        &timestamps=true";
    assert!(asked.starts_with(&format!("GET {path} HTTP")), "{asked}");
    for (query, code, words) in [
        (
            "tailLines=x",
            400,
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        (
            "tailLines=-1",
            422,
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "limitBytes=0",
            422,
            "limitBytes: Invalid value: 0: must be greater than 0",
        ),
        (
            "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
            422,
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("container=x", 400, "container x is not valid for pod p"),
    ] {
        let refused = cluster.get(&format!("{log}?{query}")).await;
        let (found, message) = refused.expect_err(query);
        assert!(
            found == code && message.contains(words),
            "{found} {message}"
        );
    }
}

#[tokio::test]
async fn a_followed_log_flows_and_ends_with_its_client() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let Some(kubectl) = tools::kubectl(33) else {
        return skipped("kubectl logs -f", "no kubectl 1.33");
    };
    let mut follower = Command::new(kubectl)
        .arg("--kubeconfig")
        .arg(cluster.server.kubeconfig())
        .args(["logs", "-f", "p"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl");
    assert!(cluster.kubelet.next().await.contains("follow=true"));
    let mut output = BufReader::new(follower.stdout.take().expect("its output"));
    for _ in 0..3 {
        cluster.kubelet.lines.add_permits(1);
        let read = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).map(|_| (line, output))
        });
        let (line, back) = read.await.expect("no panic").expect("a line");
        assert_eq!(line, "line\n");
        output = back;
    }
    follower.kill().expect("running");
    follower.wait().expect("killed");
    assert_eq!(cluster.kubelet.next().await, "closed");
}

/// Expects that the kubelet has been asked for the exec of these tests, sends a mebibyte both ways over the joined
/// connection, and closes it.
async fn expect_echo(cluster: &mut Cluster, mut stream: TlsStream<TcpStream>) {
    let asked = cluster.kubelet.next().await;
    let path = "/exec/default/p/c?command=sh&command=-c&input=1&output=1";
    assert!(asked.starts_with(&format!("POST {path} HTTP")), "{asked}");
    assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
    let mut early = [0; 5];
    stream.read_exact(&mut early).await.expect("early bytes");
    assert_eq!(&early, b"early");
    let sent = vec![b'x'; 1 << 20];
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut echoed = vec![0; sent.len()];
    let both = async { tokio::join!(writer.write_all(&sent), reader.read_exact(&mut echoed)) };
    let (written, read) = tokio::time::timeout(DEADLINE, both).await.expect("in time");
    written.expect("written");
    read.expect("echoed");
    assert_eq!(echoed, sent);
    drop((reader, writer));
    assert_eq!(cluster.kubelet.next().await, "closed");
}

#[tokio::test]
async fn upgraded_connections_are_joined() {
    let mut cluster = Cluster::start(&[]).await;
    cluster.pod("p", "worker").await;
    let exec = format!("POST {PODS}/p/exec?command=sh&command=-c&stdin=true&stdout=1 HTTP/1.1");
    let (stream, answer) = cluster.raw(&exec, UPGRADE).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(
        answer.to_lowercase().contains("upgrade: spdy/3.1"),
        "{answer}"
    );
    expect_echo(&mut cluster, stream).await;
    let (_, refused) = cluster
        .raw(&format!("GET {PODS}/p/attach HTTP/1.1"), UPGRADE)
        .await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let plain = cluster.get(&format!("{PODS}/p/exec?command=sh")).await;
    assert_eq!(plain, Err((400, "Upgrade request required".to_owned())));
}

#[tokio::test]
async fn nodes_are_proxied() {
    let mut cluster = Cluster::start(&[]).await;
    for name in [
        "worker",
        &format!("https:worker:{}", cluster.kubelet.address.port()),
    ] {
        let path = format!("/api/v1/nodes/{name}/proxy/any/path?a=b");
        assert_eq!(cluster.get(&path).await, Ok("one\n\ntwo\n".to_owned()));
        let asked = cluster.kubelet.next().await;
        assert!(
            asked.starts_with("GET /any/path?a=b HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
        assert_eq!(cluster.kubelet.next().await, "closed");
    }
    let other = cluster.get("/api/v1/nodes/worker:1/proxy/").await;
    assert_eq!(other, Err((400, "address not allowed".to_owned())));
}

#[tokio::test]
async fn a_kubelet_that_cannot_answer_is_an_error() {
    let cluster = Cluster::start(&[]).await;
    let reserved = ReservedPort::new();
    let free = reserved.number();
    cluster.node("absent", free).await;
    cluster
        .create("/api/v1/nodes", json!({"metadata": {"name": "nowhere"}}))
        .await;
    for (pod, node) in [
        ("unknown", "unknown"),
        ("nowhere", "nowhere"),
        ("absent", "absent"),
        ("gone", "worker"),
        ("broken", "worker"),
        ("unscheduled", ""),
    ] {
        cluster.pod(pod, node).await;
    }
    let absent = format!(
        "Get \"https://127.0.0.1:{free}/containerLogs/default/absent/c\": \
         dial tcp 127.0.0.1:{free}: connect: connection refused"
    );
    for (path, code, words) in [
        ("unknown/log", 404, "nodes \"unknown\" not found"),
        ("unknown/exec", 404, "nodes \"unknown\" not found"),
        (
            "nowhere/log",
            500,
            "no preferred addresses found; known addresses: []",
        ),
        ("absent/log", 500, absent.as_str()),
        ("gone/log", 400, "no such log"),
        (
            "unscheduled/exec",
            400,
            "pod unscheduled does not have a host assigned",
        ),
    ] {
        let refused = cluster.get(&format!("{PODS}/{path}")).await;
        let (found, message) = refused.expect_err(path);
        assert!(
            found == code && message.contains(words),
            "{path}: {found} {message}"
        );
    }
    let (code, message) = cluster
        .get(&format!("{PODS}/broken/log"))
        .await
        .expect_err("a part");
    assert_eq!(code, 0, "the answer had begun, and breaks off: {message}");
    let exec = format!("POST {PODS}/absent/exec?command=sh HTTP/1.1");
    let (_, refused) = cluster.raw(&exec, UPGRADE).await;
    assert!(refused.starts_with("HTTP/1.1 500 "), "{refused}");
    let proxy = "GET /api/v1/nodes/absent/proxy/x HTTP/1.1";
    let (mut stream, refused) = cluster.raw(proxy, "Connection: close").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let mut status = String::new();
    let read = tokio::time::timeout(DEADLINE, stream.read_to_string(&mut status)).await;
    read.expect("in time").expect("a status");
    let words = "error trying to reach service: dial tcp";
    assert!(status.contains(words), "{status}");
}

/// The time limit is so short that a kubelet which answers may miss it on a busy machine, so no other is asked here.
#[tokio::test]
async fn a_kubelet_that_says_nothing_is_given_up() {
    let cluster = Cluster::start(&["--kubelet-timeout=1s"]).await;
    // Takes connections, and never says anything.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let port = silent.local_addr().expect("an address").port();
    cluster.node("silent", port).await;
    cluster.pod("silent", "silent").await;
    let refused = cluster.get(&format!("{PODS}/silent/log")).await;
    let (code, message) = refused.expect_err("no log");
    let words = format!("dial tcp 127.0.0.1:{port}: i/o timeout");
    assert!(code == 500 && message.contains(&words), "{code} {message}");
}

#[tokio::test]
async fn kubelets_prove_themselves_if_an_authority_is_given() {
    let other = StandIn::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), &other.certificate).expect("written");
    let authority = file.path().display().to_string();
    let cluster = Cluster::start(&["--kubelet-certificate-authority", &authority]).await;
    cluster.node("known", other.address.port()).await;
    cluster.pod("known", "known").await;
    cluster.pod("strange", "worker").await;
    cluster
        .get(&format!("{PODS}/known/log"))
        .await
        .expect("a log");
    let (code, message) = cluster
        .get(&format!("{PODS}/strange/log"))
        .await
        .expect_err("strange");
    assert!(code == 500 && message.contains("tls: "), "{message}");
    let unverified = format!("{PODS}/strange/log?insecureSkipTLSVerifyBackend=true");
    cluster.get(&unverified).await.expect("a log");
}

#[tokio::test]
async fn kubelets_know_the_server_by_its_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let made = rcgen::generate_simple_self_signed(vec!["apiserver".to_owned()]);
    let made = made.expect("a certificate");
    fs::write(path("crt"), made.cert.pem()).expect("written");
    fs::write(path("key"), made.signing_key.serialize_pem()).expect("written");
    let kubelet = StandIn::that_knows(made.cert.der()).await;
    let flags = [
        "--kubelet-client-certificate",
        &path("crt"),
        "--kubelet-client-key",
        &path("key"),
    ];
    let mut cluster = Cluster::with(kubelet, &flags).await;
    cluster.pod("p", "worker").await;
    let log = format!("{PODS}/p/log");
    assert_eq!(cluster.get(&log).await, Ok("one\n\ntwo\n".to_owned()));
    assert!(
        cluster
            .kubelet
            .next()
            .await
            .starts_with("GET /containerLogs")
    );
    let nameless = Cluster::start(&[]).await;
    let port = cluster.kubelet.address.port();
    nameless.node("strict", port).await;
    nameless.pod("p", "strict").await;
    let (code, message) = nameless.get(&log).await.expect_err("nobody it knows");
    assert_eq!(code, 500, "{message}");
}
