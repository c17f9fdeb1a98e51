//! Pods under `--test-cluster=kubelet`, from their creation to their end.

use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::{condition, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODE: &str = "/api/v1/nodes/test-cluster";

async fn started(flags: &[&str]) -> Cluster {
    let cluster = Cluster::with(flags).await;
    cluster
        .expect_there("/api/v1/namespaces/default/serviceaccounts/default")
        .await;
    cluster
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

#[tokio::test]
async fn a_pod_gets_a_node_runs_and_goes_when_it_is_deleted() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    for name in ["p", "other"] {
        cluster.create(PODS, pod(name)).await;
    }
    let path = format!("{PODS}/p");
    let found = cluster.expect(&path, is_ready).await;
    let other = cluster.expect(&format!("{PODS}/other"), is_ready).await;
    assert_eq!(found["spec"]["nodeName"], "test-cluster");
    let status = &found["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["qosClass"], "BestEffort");
    assert_eq!(status["podIPs"], json!([{"ip": status["podIP"]}]));
    assert_eq!(status["hostIPs"], json!([{"ip": status["hostIP"]}]));
    assert_ne!(status["podIP"], other["status"]["podIP"]);
    let container = &status["containerStatuses"][0];
    assert_eq!(
        (&container["ready"], &container["started"]),
        (&json!(true), &json!(true))
    );
    for kind in [
        "Initialized",
        "ContainersReady",
        "PodScheduled",
        "PodReadyToStartContainers",
    ] {
        assert_eq!(condition(&found, kind)["status"], "True", "{kind}: {found}");
    }

    cluster.write(Method::DELETE, &path, json!({})).await;
    cluster.expect_gone(&path).await;
}

#[tokio::test]
async fn a_pod_that_is_not_restarted_succeeds_and_is_ready_before() {
    let flags = [
        "--test-cluster=kubelet",
        "--test-cluster-pods-ready-after=1s",
    ];
    let cluster = started(&flags).await;
    let mut once = pod("once");
    once["spec"]["restartPolicy"] = "Never".into();
    once["spec"]["initContainers"] = json!([{"name": "first", "image": "i"}]);
    let created = cluster.create(PODS, once).await;
    let path = format!("{PODS}/once");
    let ended = cluster
        .expect(&path, |it| it["status"]["phase"] == "Succeeded")
        .await;
    for member in ["containerStatuses", "initContainerStatuses"] {
        let state = &ended["status"][member][0]["state"]["terminated"];
        assert_eq!(state["reason"], "Completed", "{ended}");
        assert_eq!(state["exitCode"], 0);
    }
    assert_eq!(condition(&ended, "Ready")["reason"], "PodCompleted");
    let states = cluster.states_after(PODS, &created).await;
    let states = states.iter().map(|it| {
        let phase = it["status"]["phase"].as_str().unwrap_or_default();
        (phase, is_ready(it))
    });
    let states: Vec<(&str, bool)> = states.collect();
    let expected = [
        ("Pending", false),
        ("Running", false),
        ("Running", true),
        ("Succeeded", false),
    ];
    assert_eq!(states, expected);
}

#[tokio::test]
async fn a_status_that_a_test_wrote_stays() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    let mut gated = pod("p");
    gated["spec"]["readinessGates"] = json!([{"conditionType": "example.com/open"}]);
    cluster.create(PODS, gated).await;
    let path = format!("{PODS}/p");
    let why = |it: &Value| condition(it, "Ready")["reason"].clone();
    cluster
        .expect(&path, |it| why(it) == "ReadinessGatesNotReady")
        .await;
    let write = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    let strategic = async |body: Value| {
        cluster
            .patch_strategically(&format!("{path}/status"), &body)
            .await
    };
    strategic(write("example.com/open", "True")).await;
    cluster.expect(&path, is_ready).await;

    let mut mine = write("Ready", "False");
    mine["status"]["conditions"][0]["reason"] = "Mine".into();
    strategic(mine).await;
    // A change of the pod is looked at, and of its status nothing is undone.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.write(Method::PATCH, &path, label).await;
    strategic(json!({"status": {"phase": "Failed"}})).await;
    cluster.create(PODS, pod("later")).await;
    cluster.expect(&format!("{PODS}/later"), is_ready).await;
    let found = cluster.get(&path).await.expect("a pod");
    assert_eq!(found["status"]["phase"], "Failed");
    assert_eq!(why(&found), "Mine");
}

#[tokio::test]
async fn a_pod_that_no_node_takes_waits_for_one() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    let mut picky = pod("picky");
    picky["spec"]["nodeSelector"] = json!({"disk": "fast"});
    cluster.create(PODS, picky).await;
    let mut foreign = pod("foreign");
    foreign["spec"]["schedulerName"] = "mine".into();
    cluster.create(PODS, foreign).await;
    let path = format!("{PODS}/picky");
    cluster
        .expect(&path, |it| {
            condition(it, "PodScheduled")["reason"] == "Unschedulable"
        })
        .await;
    let label = json!({"metadata": {"labels": {"disk": "fast"}}});
    cluster.write(Method::PATCH, NODE, label).await;
    let found = cluster.expect(&path, is_ready).await;
    assert_eq!(condition(&found, "PodScheduled")["status"], "True");
    let foreign = cluster.get(&format!("{PODS}/foreign")).await;
    let foreign = foreign.expect("a pod");
    assert!(foreign["spec"]["nodeName"].is_null(), "{foreign}");
}

#[tokio::test]
async fn the_node_is_ready_and_comes_back() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    let is_free =
        |it: &Value| condition(it, "Ready")["status"] == "True" && it["spec"]["taints"].is_null();
    let node = cluster.expect(NODE, is_free).await;
    assert_eq!(
        node["metadata"]["labels"]["kubernetes.io/hostname"],
        "test-cluster"
    );
    cluster.write(Method::DELETE, NODE, json!({})).await;
    cluster
        .expect(NODE, |it| {
            it["metadata"]["uid"] != node["metadata"]["uid"] && is_free(it)
        })
        .await;
}

#[tokio::test]
async fn a_namespace_goes_with_pods_that_run() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    cluster.namespace("goes").await;
    let pods = "/api/v1/namespaces/goes/pods";
    for number in 0..3 {
        let name = format!("p{number}");
        cluster.create(pods, pod(&name)).await;
        cluster.expect(&format!("{pods}/{name}"), is_ready).await;
    }
    cluster
        .delete("/api/v1/namespaces/goes", "Background")
        .await;
    cluster.expect_gone("/api/v1/namespaces/goes").await;
}

#[tokio::test]
async fn a_pod_with_finalizers_fails_and_stays_until_they_are_gone() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    cluster.create(PODS, held).await;
    let path = format!("{PODS}/held");
    cluster.expect(&path, is_ready).await;
    cluster.write(Method::DELETE, &path, json!({})).await;
    cluster
        .expect(&path, |it| {
            it["status"]["phase"] == "Failed" && it["metadata"]["deletionGracePeriodSeconds"] == 0
        })
        .await;
    let free = json!({"metadata": {"finalizers": null}});
    cluster.write(Method::PATCH, &path, free).await;
    eventually(DEADLINE, "the pod is gone", async || {
        cluster.get(&path).await.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_pod_fails_when_the_time_is_over_for_which_it_may_run() {
    let cluster = started(&["--test-cluster=kubelet"]).await;
    cluster.create(PODS, pod("p")).await;
    let path = format!("{PODS}/p");
    cluster.expect(&path, is_ready).await;
    let soon = json!({"spec": {"activeDeadlineSeconds": 1}});
    cluster.write(Method::PATCH, &path, soon).await;
    let failed = cluster
        .expect(&path, |it| it["status"]["phase"] == "Failed")
        .await;
    assert_eq!(failed["status"]["reason"], "DeadlineExceeded");
}
