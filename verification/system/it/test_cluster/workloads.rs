//! The controllers that make pods, as the conformance tests of Kubernetes ask for them. There is no kubelet: a test
//! makes pods ready itself.

mod deployments;
mod replica_sets;
mod rollouts;

use http::Method;
use jiff::Timestamp;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::condition;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Starts a server with the controllers, and waits until pods can be created.
async fn start() -> Cluster {
    let cluster = Cluster::with(&["--test-cluster=workloads"]).await;
    cluster
        .expect_there("/api/v1/namespaces/default/serviceaccounts/default")
        .await;
    cluster
}

/// Returns a template of pods with the label `app` and this image.
fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn replica_set(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}})
}

fn deployment(replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}})
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

fn image(object: &Value) -> &Value {
    let spec = object["spec"].get("template").unwrap_or(object);
    &spec["spec"]["containers"][0]["image"]
}

/// Returns the objects of a list, in the order of their names.
async fn list(cluster: &Cluster, path: &str) -> Vec<Value> {
    let list = cluster.get(path).await.expect("a list");
    list["items"].as_array().expect("items").clone()
}

/// Does for the pods that are chosen what a kubelet does: those that are to run are ready, and those that end are gone.
async fn run_pods(cluster: &Cluster, is_chosen: impl Fn(&Value) -> bool) {
    for pod in list(cluster, PODS).await.iter().filter(|it| is_chosen(it)) {
        let path = format!("{PODS}/{}", name(pod));
        // Any of them may be gone by now.
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            let now = json!({"gracePeriodSeconds": 0});
            cluster.ask(Method::DELETE, &path, &now).await;
        } else if pod["status"]["phase"] != "Running" {
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": now});
            let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
            let path = format!("{path}/status");
            cluster.ask(Method::PATCH, &path, &status).await;
        }
    }
}

/// Waits until an object is as expected while all pods run.
async fn expect_while_running(cluster: &Cluster, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    eventually(DEADLINE, format!("{path} is as expected"), async || {
        run_pods(cluster, |_| true).await;
        let found = cluster.get(path).await;
        let holds = found.as_ref().is_some_and(&is);
        holds.then(|| found.clone()).flatten().ok_or(found)
    })
    .await
}

/// Waits until there are so many pods that are not ending.
async fn expect_pods(cluster: &Cluster, count: usize) -> Vec<Value> {
    eventually(DEADLINE, format!("there are {count} pods"), async || {
        let mut pods = list(cluster, PODS).await;
        pods.retain(|it| it["metadata"]["deletionTimestamp"].is_null());
        if pods.len() == count {
            Ok(pods)
        } else {
            Err(pods)
        }
    })
    .await
}

async fn patch(cluster: &Cluster, path: &str, patch: Value) -> Value {
    cluster.write(Method::PATCH, path, patch).await
}

/// Returns true if all that a Deployment says of its rollout is that it is over.
fn is_complete(deployment: &Value) -> bool {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    let replicas = spec["replicas"].as_i64();
    counts
        .iter()
        .all(|it| status[it].as_i64().unwrap_or_default() == replicas.unwrap_or_default())
        && status["observedGeneration"] == deployment["metadata"]["generation"]
        && condition(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable"
        && condition(deployment, "Available")["status"] == "True"
}
