//! Addresses of services and ports on the nodes: none is handed out twice, whoever comes, changes and goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::etcd::Etcd;
use crate::support::server::Server;

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// So many clients, each with so many services at a time, which all fit into the range of addresses.
const CLIENTS: u64 = 8;
const SERVICES_MAX: usize = 12;
const STEPS: usize = 60;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody certainly has. It is noted after the server has said so, and forgotten before the server is asked
/// to take it back.
type Held = Arc<Mutex<HashMap<String, String>>>;

#[tokio::test]
async fn nothing_is_handed_out_twice_by_the_embedded_store() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    clients_come_and_go(client).await;
}

#[tokio::test]
async fn nothing_is_handed_out_twice_over_etcd() {
    let Some(etcd) = Etcd::start("allocations over etcd") else {
        return;
    };
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let client = server.client().await;
    clients_come_and_go(client).await;
}

async fn clients_come_and_go(client: kube::Client) {
    let held = Held::default();
    let mut tasks = JoinSet::new();
    for seed in 0..CLIENTS {
        let user = User {
            client: client.clone(),
            held: Arc::clone(&held),
            random: StdRng::seed_from_u64(seed),
            name: format!("user-{seed}"),
            services: Vec::new(),
        };
        tasks.spawn(user.run());
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no number was handed out twice");
    }
    // What was given back can be had again: far more was created than there are addresses.
    let list = ask(&client, "GET", SERVICES, Value::Null)
        .await
        .expect("a list");
    let kept = list["items"].as_array().expect("items").len() - 1;
    let held = held.lock().expect("sound");
    let addresses = held.keys().filter(|it| it.contains('.')).count();
    assert_eq!(kept, addresses, "each service has one address");
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

    async fn create(&mut self, step: usize) {
        let name = format!("{}-{step}", self.name);
        let kind = ["ClusterIP", "NodePort", "LoadBalancer"][step % 3];
        let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        let service = json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": ports}});
        let dry = format!("{SERVICES}?dryRun=All");
        ask(&self.client, "POST", &dry, service.clone())
            .await
            .expect("tried");
        let created = ask(&self.client, "POST", SERVICES, service).await;
        let numbers = numbers(&created.expect("created"));
        self.note(&name, &numbers);
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
        self.note(&name, &numbers);
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

    fn note(&self, name: &str, numbers: &[String]) {
        let mut held = self.held.lock().expect("sound");
        for number in numbers {
            let other = held.insert(number.clone(), name.to_owned());
            assert_eq!(other, None, "{name} has {number} as well");
        }
    }

    fn forget(&self, numbers: &[String]) {
        let mut held = self.held.lock().expect("sound");
        for number in numbers {
            held.remove(number);
        }
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
    let media_type = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(body)
        .expect("a request");
    let answer = tokio::time::timeout(PATIENCE, client.request_text(request));
    let text = answer.await.expect("in time")?;
    Ok(serde_json::from_str(&text).expect("JSON"))
}
