//! Addresses of services and ports on the nodes: none is handed out twice, whoever comes, changes and goes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
/// The key under which the store notes the ports of the nodes, and the flag with which it does so in JSON, which a test
/// can read.
const NODE_PORTS: &str = "/registry/ranges/servicenodeports";
const AS_JSON: &str = "--storage-media-type=application/json";
/// A short request timeout: leaked allocations are released after a few times that.
const SHORT_REQUESTS: &str = "--request-timeout=8s";
/// The number of clients, the most services that each has at a time, which all fit into the range of addresses, and the
/// number of steps of each.
const CLIENTS: u64 = 8;
const SERVICES_MAX: usize = 12;
const STEPS: usize = 60;
/// Tells users apart who are not there at the same time.
static NAMES: AtomicU32 = AtomicU32::new(0);

/// The services that certainly have an address or port. One is noted after the server has answered, and removed before
/// the server is asked to delete it.
type Held = Arc<Mutex<HashMap<String, String>>>;

#[tokio::test]
async fn nothing_is_handed_out_twice_by_the_embedded_store() {
    let (_server, client) = Server::ready(&[]).await;
    let held = Held::default();
    clients_come_and_go(std::slice::from_ref(&client), &held).await;
    all_is_given_back(&client).await;
}

#[tokio::test]
async fn a_local_load_balancer_gets_a_port_for_its_health_check() {
    let (_server, client) = Server::ready(&[]).await;
    let local =
        json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    let service = |name: &str, spec: &Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let check = |service: &Value| service["spec"]["healthCheckNodePort"].as_u64();
    let made = ask(&client, "POST", SERVICES, service("made", &local)).await;
    let given = check(&made.expect("created"));
    assert!(given.is_some());
    let path = format!("{SERVICES}/made");
    let put = ask(&client, "PUT", &path, service("made", &local)).await;
    assert_eq!(check(&put.expect("replaced")), given, "it stays");
    let inside = json!({"ports": [{"port": 80}]});
    ask(&client, "POST", SERVICES, service("changed", &inside))
        .await
        .expect("created");
    let path = format!("{SERVICES}/changed");
    let patched = ask(&client, "PATCH", &path, json!({"spec": local})).await;
    assert!(check(&patched.expect("patched")).is_some_and(|it| Some(it) != given));
}

#[tokio::test]
async fn nothing_is_handed_out_twice_by_two_servers_over_etcd() {
    let Some(etcd) = Etcd::start("allocations of two servers") else {
        return;
    };
    let flags = ["--etcd-servers", &etcd.endpoint(), AS_JSON];
    let (mut one, mut two) = (Server::start(&flags), Server::start(&flags));
    let clients = [one.client().await, two.client().await];
    let held = Held::default();
    clients_come_and_go(&clients, &held).await;
    // What one has handed out the other takes back.
    all_is_given_back(&clients[1]).await;
    nothing_is_noted(&clients[0], &etcd).await;
}

#[tokio::test]
async fn what_a_killed_server_leaves_behind_is_given_back() {
    let Some(etcd) = Etcd::start("allocations of a server that is killed") else {
        return;
    };
    let flags = ["--etcd-servers", &etcd.endpoint(), AS_JSON, SHORT_REQUESTS];
    let (mut killed, mut left) = (Server::start(&flags), Server::start(&flags));
    let (client, other) = (killed.client().await, left.client().await);
    let held = Held::default();
    // Somebody is always about to get something, or to give it back.
    let mut tasks = JoinSet::new();
    for seed in 0..CLIENTS {
        tasks.spawn(User::new(&client, &held, seed).until_it_is_killed());
    }
    eventually(DEADLINE, "some services", async || {
        services(&other).await.len() >= SERVICES_MAX
    })
    .await;
    killed.kill();
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no number was handed out twice");
    }
    killed.start_again();
    let again = killed.client().await;
    // Those whose services nobody answered for may be there or not; by now etcd has done all that the killed server
    // asked of it. Others go on meanwhile, and get none of them.
    let held = Held::default();
    for service in services(&other).await {
        let name = service["metadata"]["name"].as_str().expect("a name");
        note(&held, name, &numbers(&service));
    }
    clients_come_and_go(&[other.clone(), again.clone()], &held).await;
    all_is_given_back(&again).await;
    nothing_is_noted(&other, &etcd).await;
}

#[tokio::test]
async fn a_start_that_was_killed_does_not_keep_the_next_from_starting() {
    let Some(etcd) = Etcd::start("a start that was killed") else {
        return;
    };
    let left = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"name": "10.0.0.1", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}});
    etcd.etcdctl(&["put", "/registry/ipaddresses/10.0.0.1", &left.to_string()]);
    let (_server, client) =
        Server::ready(&["--etcd-servers", &etcd.endpoint(), "--request-timeout=4s"]).await;
    let path = format!("{SERVICES}/kubernetes");
    let service = ask(&client, "GET", &path, Value::Null)
        .await
        .expect("there");
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    let noted = ask(
        &client,
        "GET",
        &format!("{ADDRESSES}/10.0.0.1"),
        Value::Null,
    )
    .await;
    assert_ne!(noted.expect("noted")["metadata"]["uid"], "1");
}

/// Has clients of each of these servers at a time.
async fn clients_come_and_go(servers: &[kube::Client], held: &Held) {
    let mut tasks = JoinSet::new();
    for (seed, client) in (0..CLIENTS).zip(servers.iter().cycle()) {
        tasks.spawn(User::new(client, held, seed).run());
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no number was handed out twice");
    }
    let kept = services(&servers[0]).await.len();
    let held = held.lock().expect("sound");
    let addresses = held.keys().filter(|it| it.contains('.')).count();
    assert_eq!(kept, addresses, "each service has one address");
}

/// The services of all these clients.
async fn services(client: &kube::Client) -> Vec<Value> {
    let list = ask(client, "GET", SERVICES, Value::Null).await;
    let list = list.expect("a list")["items"].clone();
    let all = list.as_array().expect("items").iter();
    all.filter(|it| it["metadata"]["name"] != "kubernetes")
        .cloned()
        .collect()
}

async fn all_is_given_back(client: &kube::Client) {
    for service in services(client).await {
        let name = service["metadata"]["name"].as_str().expect("a name");
        let path = format!("{SERVICES}/{name}");
        ask(client, "DELETE", &path, Value::Null)
            .await
            .expect("deleted");
    }
}

/// Waits until the service of the API has the only address, and nobody a port of the nodes.
async fn nothing_is_noted(client: &kube::Client, etcd: &Etcd) {
    eventually(DEADLINE, "nothing is noted", async || {
        let list = ask(client, "GET", ADDRESSES, Value::Null).await;
        let list = list.expect("a list")["items"].clone();
        let addresses = list.as_array().expect("items").iter();
        let addresses: Vec<_> = addresses.map(|it| &it["metadata"]["name"]).collect();
        let ports = etcd.etcdctl(&["get", "--print-value-only", NODE_PORTS]);
        let ports: Value = serde_json::from_str(&ports).expect("JSON");
        assert_eq!(ports["range"], "30000-32767");
        let bits = ports["data"].as_str().unwrap_or_default();
        if addresses == ["10.0.0.1"] && bits.is_empty() {
            Ok(())
        } else {
            Err(format!("{addresses:?} and {bits:?}"))
        }
    })
    .await;
}

/// A client that creates, changes and deletes services of its own.
struct User {
    client: kube::Client,
    held: Held,
    random: StdRng,
    name: String,
    services: Vec<(String, Vec<String>)>,
}

impl User {
    fn new(client: &kube::Client, held: &Held, seed: u64) -> Self {
        Self {
            client: client.clone(),
            held: Arc::clone(held),
            random: StdRng::seed_from_u64(seed),
            name: format!("user-{seed}-{}", NAMES.fetch_add(1, Ordering::Relaxed)),
            services: Vec::new(),
        }
    }

    async fn run(mut self) {
        for step in 0..STEPS {
            let full = self.services.len() == SERVICES_MAX;
            match self.random.random_range(0..4) {
                0 | 1 if !full => self.create(step).await,
                2 if !self.services.is_empty() => self.change().await,
                _ if !self.services.is_empty() => self.delete().await,
                _ => self.create(step).await,
            }
        }
    }

    /// Creates and deletes services, until the server no longer answers.
    async fn until_it_is_killed(mut self) {
        for step in 0.. {
            let name = format!("{}-{step}", self.name);
            let service = new_service(&name, step);
            let Ok(created) = ask(&self.client, "POST", SERVICES, service).await else {
                return;
            };
            note(&self.held, &name, &numbers(&created));
            self.services.push((name, numbers(&created)));
            if self.services.len() > SERVICES_MAX / 2 {
                let index = self.random.random_range(0..self.services.len());
                let (name, numbers) = self.services.swap_remove(index);
                self.forget(&numbers);
                let path = format!("{SERVICES}/{name}");
                if ask(&self.client, "DELETE", &path, Value::Null)
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    }

    async fn create(&mut self, step: usize) {
        let name = format!("{}-{step}", self.name);
        let service = new_service(&name, step);
        let dry = format!("{SERVICES}?dryRun=All");
        ask(&self.client, "POST", &dry, service.clone())
            .await
            .expect("tried");
        let created = ask(&self.client, "POST", SERVICES, service).await;
        let numbers = numbers(&created.expect("created"));
        note(&self.held, &name, &numbers);
        self.services.push((name, numbers));
    }

    /// Gives ports back, or gets some; perhaps only tries to.
    async fn change(&mut self) {
        let index = self.random.random_range(0..self.services.len());
        let (name, before) = self.services.swap_remove(index);
        let kind = ["ClusterIP", "NodePort"][self.random.random_range(0..2)];
        let patch = json!({"spec": {"type": kind}});
        let path = format!("{SERVICES}/{name}");
        let dry = format!("{path}?dryRun=All");
        ask(&self.client, "PATCH", &dry, patch.clone())
            .await
            .expect("tried");
        let refused = json!({"spec": {"type": "NodePort", "externalTrafficPolicy": "Nowhere"}});
        let refused = ask(&self.client, "PATCH", &path, refused).await;
        refused.expect_err("no such policy");
        self.forget(&before);
        let changed = ask(&self.client, "PATCH", &path, patch).await;
        let numbers = numbers(&changed.expect("changed"));
        note(&self.held, &name, &numbers);
        self.services.push((name, numbers));
    }

    async fn delete(&mut self) {
        let index = self.random.random_range(0..self.services.len());
        let (name, numbers) = self.services.swap_remove(index);
        self.forget(&numbers);
        let path = format!("{SERVICES}/{name}");
        let deleted = ask(&self.client, "DELETE", &path, Value::Null).await;
        deleted.expect("deleted");
    }

    fn forget(&self, numbers: &[String]) {
        let mut held = self.held.lock().expect("sound");
        for number in numbers {
            held.remove(number);
        }
    }
}

fn new_service(name: &str, step: usize) -> Value {
    let kind = ["ClusterIP", "NodePort", "LoadBalancer"][step % 3];
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": ports}})
}

fn note(held: &Held, name: &str, numbers: &[String]) {
    let mut held = held.lock().expect("sound");
    for number in numbers {
        let other = held.insert(number.clone(), name.to_owned());
        assert_eq!(other, None, "{name} has {number} as well");
    }
}

/// The address of a service, and its ports on the nodes.
fn numbers(service: &Value) -> Vec<String> {
    let address = service["spec"]["clusterIP"].as_str().expect("an address");
    let ports = service["spec"]["ports"].as_array().expect("ports").iter();
    let ports = ports.filter_map(|port| port["nodePort"].as_u64());
    let ports = ports.map(|port| port.to_string());
    std::iter::once(address.to_owned()).chain(ports).collect()
}

async fn ask(
    client: &kube::Client,
    method: &str,
    path: &str,
    body: Value,
) -> Result<Value, kube::Error> {
    let request = requests::request(method, path, &body);
    let answer = tokio::time::timeout(DEADLINE, client.request_text(request));
    let text = answer.await.expect("in time")?;
    Ok(serde_json::from_str(&text).expect("JSON"))
}
