//! The proxies of pods, services and nodes, to a stand-in at this machine's own address: loopback is refused.
//! The operating system keeps what is sent there within the machine.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use super::*;
use crate::support::recorded;

/// An address of this machine that others could reach it by, if it has one. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    let usable = !address.is_loopback() && !address.is_unspecified();
    usable.then_some(address)
}

/// A pod, and who answers at its address.
struct Proxied {
    cluster: Cluster,
    address: IpAddr,
    web: StandIn,
}

impl Proxied {
    async fn start() -> Option<Self> {
        let Some(address) = own_address() else {
            recorded::skipped("proxies", "this machine has no address but loopback");
            return None;
        };
        let cluster = Cluster::start(&[]).await;
        let web = StandIn::at(address, false).await;
        let port = web.address.port();
        cluster
            .pod_at("web", Some(&address.to_string()), port)
            .await;
        Some(Self {
            cluster,
            address,
            web,
        })
    }

    /// Returns the request that the pod got, once the connection has ended.
    async fn asked(&mut self) -> String {
        let asked = self.web.next().await;
        assert_eq!(self.web.next().await, "closed");
        asked
    }
}

impl Cluster {
    async fn pod_at(&self, name: &str, address: Option<&str>, port: u16) {
        let ports = json!([{"containerPort": port}]);
        let containers = json!([{"name": "c", "image": "i", "ports": ports}]);
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        self.create(PODS, pod).await;
        let running = json!({"status": {"phase": "Running", "podIP": address}});
        self.patch(&format!("{PODS}/{name}/status"), &running).await;
    }

    /// The code and message of a refusal. kube-rs would try again when nothing is there.
    async fn refusal(&self, path: &str) -> (u64, String) {
        let request = format!("GET {path} HTTP/1.1");
        let (mut stream, _) = self.raw(&request, "Connection: close").await;
        let mut status = String::new();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_string(&mut status)).await;
        read.expect("in time").expect("a status");
        let status: Value = serde_json::from_str(&status).expect("a status");
        let message = status["message"].as_str().expect("a message");
        (status["code"].as_u64().expect("a code"), message.to_owned())
    }

    async fn service(&self, name: &str, ports: Value, subsets: Value) {
        let services = "/api/v1/namespaces/default/services";
        let service = json!({"metadata": {"name": name}, "spec": {"ports": ports}});
        self.create(services, service).await;
        let endpoints = "/api/v1/namespaces/default/endpoints";
        let object = json!({"metadata": {"name": name}, "subsets": subsets});
        self.create(endpoints, object).await;
    }
}

#[tokio::test]
async fn pods_are_proxied() {
    let Some(mut it) = Proxied::start().await else {
        return;
    };
    let port = it.web.address.port();
    for name in [
        "web".to_owned(),
        format!("web:{port}"),
        format!("http:web:{port}"),
    ] {
        let path = format!("{PODS}/{name}/proxy/any/path");
        let answer = it.cluster.get(&format!("{path}?a=b")).await;
        assert_eq!(answer, Ok("one\n\ntwo\n".to_owned()));
        let asked = it.asked().await.to_lowercase();
        assert!(
            asked.starts_with("get /any/path?a=b http/1.1\r\n"),
            "{asked}"
        );
        assert!(
            asked.contains(&format!("x-forwarded-uri: {path}\r\n")),
            "{asked}"
        );
        assert!(!asked.contains("authorization"), "{asked}");
    }
    let echo = format!("{PODS}/web/proxy/echo");
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let answer = it.cluster.ask(method, &echo, "what I say").await;
        assert_eq!(answer, Ok("what I say".to_owned()), "{method}");
        assert!(it.asked().await.starts_with(&format!("{method} /echo ")));
    }
    let other = it.cluster.ask("TRACE", &echo, "").await;
    assert_eq!(other.expect_err("another method").0, 405);
    let secure = StandIn::at(it.address, true).await;
    let path = format!("{PODS}/https:web:{}/proxy/", secure.address.port());
    assert_eq!(it.cluster.get(&path).await, Ok("one\n\ntwo\n".to_owned()));
}

#[tokio::test]
async fn redirections_and_upgrades_pass_the_proxy() {
    let Some(mut it) = Proxied::start().await else {
        return;
    };
    let proxy = format!("{PODS}/web/proxy");
    let (_, answer) = it
        .cluster
        .raw(&format!("GET {proxy}/away HTTP/1.1"), "A: b")
        .await;
    let answer = answer.to_lowercase();
    assert!(answer.starts_with("http/1.1 302 "), "{answer}");
    assert!(
        answer.contains(&format!("location: {proxy}/there?a=b\r\n")),
        "{answer}"
    );
    assert!(answer.contains("x-mine: kept"), "{answer}");
    assert!(!answer.contains("access-control"), "{answer}");
    let asked = it.asked().await.to_lowercase();
    assert!(asked.contains("host: x\r\n"), "{asked}");
    let page = it.cluster.get(&format!("{proxy}/page")).await;
    let link = format!(r#"<a href="{proxy}/there">"#);
    assert_eq!(page, Ok(link));
    it.asked().await;
    let (_, answer) = it
        .cluster
        .raw(&format!("GET {proxy}?a=b HTTP/1.1"), "A: b")
        .await;
    let answer = answer.to_lowercase();
    assert!(answer.starts_with("http/1.1 301 "), "{answer}");
    assert!(
        answer.contains(&format!("location: {proxy}/?a=b\r\n")),
        "{answer}"
    );
    let (mut stream, answer) = it
        .cluster
        .raw(&format!("GET {proxy}/exec/x HTTP/1.1"), UPGRADE)
        .await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    stream.write_all(b"said").await.expect("written");
    let mut heard = [0; 9];
    stream.read_exact(&mut heard).await.expect("an echo");
    assert_eq!(&heard, b"earlysaid");
}

#[tokio::test]
async fn services_are_proxied() {
    let Some(mut it) = Proxied::start().await else {
        return;
    };
    let (address, port) = (it.address.to_string(), it.web.address.port());
    it.cluster.pod_at("other", Some("10.0.0.9"), port).await;
    let end = |pod: &str| {
        let reference = json!({"kind": "Pod", "name": pod, "namespace": "default"});
        json!({"ip": address, "targetRef": reference})
    };
    let ports = json!([{"name": "http", "port": 80}, {"name": "more", "port": 81}]);
    // Addresses that are not their pods' are passed over.
    let liar = end("other");
    let subsets = json!([
        {"addresses": [liar, end("web"), end("absent"), {"ip": address}],
            "ports": [{"name": "http", "port": port}]},
        {"addresses": [liar], "ports": [{"name": "more", "port": port}]}]);
    it.cluster.service("front", ports, subsets).await;
    let single = json!([{"addresses": [end("web")], "ports": [{"port": port}]}]);
    it.cluster
        .service("single", json!([{"port": 80}]), single)
        .await;
    it.cluster
        .service("empty", json!([{"port": 80}]), json!([]))
        .await;
    let proxy = |name: &str| format!("/api/v1/namespaces/default/services/{name}/proxy/path");
    for name in [
        "front:http",
        "front:80",
        "http:front:http",
        "single",
        "single:80",
    ] {
        let answer = it.cluster.get(&proxy(name)).await;
        assert_eq!(answer, Ok("one\n\ntwo\n".to_owned()), "{name}");
        assert!(it.asked().await.starts_with("GET /path HTTP/1.1\r\n"));
    }
    for (name, code, message) in [
        ("front", 503, "no endpoints available for service \"front\""),
        (
            "front:more",
            503,
            "no endpoints available for service \"front:more\"",
        ),
        (
            "front:82",
            503,
            "no service port 82 found for service \"front\"",
        ),
        ("empty", 503, "no endpoints available for service \"empty\""),
        ("absent", 404, "endpoints \"absent\" not found"),
        ("absent:80", 404, "services \"absent\" not found"),
        (
            "ftp:front:80",
            400,
            "invalid service request \"ftp:front:80\"",
        ),
    ] {
        let refused = it.cluster.refusal(&proxy(name)).await;
        assert_eq!(refused, (code, message.to_owned()), "{name}");
    }
}

#[tokio::test]
async fn what_may_not_be_reached_is_not_proxied() {
    let cluster = Cluster::start(&[]).await;
    let port = cluster.kubelet.address.port();
    for (name, address) in [
        ("here", Some("127.0.0.1")),
        ("link", Some("169.254.169.254")),
        ("here-too", Some("::1")),
        ("nowhere", None),
    ] {
        cluster.pod_at(name, address, port).await;
        let refused = cluster.get(&format!("{PODS}/{name}/proxy/")).await;
        let words = (400, "address not allowed".to_owned());
        assert_eq!(refused, Err(words), "{name}");
    }
    for (path, code, words) in [
        ("absent/proxy/", 404, "pods \"absent\" not found"),
        ("a:b:c:d/proxy/", 400, "invalid pod request \"a:b:c:d\""),
        ("here:web/proxy/", 503, "lookup tcp/web: unknown port"),
    ] {
        let (found, message) = cluster.refusal(&format!("{PODS}/{path}")).await;
        assert!(
            found == code && message.contains(words),
            "{path}: {found} {message}"
        );
    }
}

#[tokio::test]
async fn other_ports_of_nodes_are_proxied() {
    let Some(mut it) = Proxied::start().await else {
        return;
    };
    let port = it.web.address.port();
    let kubelet = it.cluster.kubelet.address.port();
    let address = it.address.to_string();
    it.cluster.node_at("near", &address, kubelet).await;
    for name in [format!("near:{port}"), format!("http:near:{port}")] {
        let answer = it
            .cluster
            .get(&format!("/api/v1/nodes/{name}/proxy/x"))
            .await;
        assert_eq!(answer, Ok("one\n\ntwo\n".to_owned()));
        it.asked().await;
    }
}
