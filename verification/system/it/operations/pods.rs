//! Pods of classes of runtimes, and what every pod and node gets before webhooks see it.

use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::Cluster;

const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
const PODS: &str = "/api/v1/namespaces/default/pods";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (member, value) in spec.as_object().expect("members") {
        pod["spec"][member] = value.clone();
    }
    pod
}

#[tokio::test]
async fn pods_cost_what_their_class_of_runtimes_says_and_run_where_it_can() {
    let cluster = Cluster::start().await;
    let unknown = pod("a", json!({"runtimeClassName": "unknown"}));
    let refused = cluster.post(PODS, &unknown).await;
    refused.is_refused(
        403,
        r#"pods "a" is forbidden: pod rejected: RuntimeClass "unknown" not found"#,
    );

    // What names no object is not there either. A client is asked for a RuntimeClass, which refuses such a name.
    for (member, code, message) in [
        (
            "runtimeClassName",
            500,
            r#"invalid resource name "../x": [may not contain '/']"#,
        ),
        (
            "priorityClassName",
            403,
            r#"pods "a" is forbidden: no PriorityClass with name ../x was found"#,
        ),
    ] {
        let refused = cluster.post(PODS, &pod("a", json!({member: "../x"}))).await;
        refused.is_refused(code, message);
    }

    let class = json!({"metadata": {"name": "heavy"}, "handler": "sandbox",
        "overhead": {"podFixed": {"cpu": "10m", "memory": "1Mi"}},
        "scheduling": {"nodeSelector": {"sandboxed": "yes"},
            "tolerations": [{"key": "sandboxed", "operator": "Exists"}]}});
    cluster.post(CLASSES, &class).await.is(201, "a class");
    let light = json!({"metadata": {"name": "light"}, "handler": "plain"});
    cluster.post(CLASSES, &light).await.is(201, "a class");
    let heavy = pod(
        "a",
        json!({"runtimeClassName": "heavy", "nodeSelector": {"disk": "fast"}}),
    );
    let made = cluster.post(PODS, &heavy).await.is(201, "a pod");
    let spec = &made["spec"];
    assert_eq!(spec["overhead"], json!({"cpu": "10m", "memory": "1Mi"}));
    assert_eq!(
        spec["nodeSelector"],
        json!({"disk": "fast", "sandboxed": "yes"})
    );
    let tolerations = spec["tolerations"].as_array().expect("tolerations");
    let keys: Vec<_> = tolerations.iter().map(|it| it["key"].as_str()).collect();
    let expected = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "sandboxed",
    ];
    assert_eq!(keys, expected.map(Some));
    let made = cluster
        .post(PODS, &pod("b", json!({"runtimeClassName": "light"})))
        .await;
    assert_eq!(made.is(201, "a pod")["spec"].get("overhead"), None);

    pods_do_not_cost_something_else(&cluster).await;
}

async fn pods_do_not_cost_something_else(cluster: &Cluster) {
    let mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    let without =
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    let conflict = "conflict: runtimeClass.scheduling.nodeSelector[sandboxed] = yes; pod.spec.nodeSelector[sandboxed] = no";
    for (spec, message) in [
        (
            json!({"runtimeClassName": "heavy", "overhead": {"cpu": "20m"}}),
            mismatch,
        ),
        (
            json!({"runtimeClassName": "light", "overhead": {"cpu": "20m"}}),
            without,
        ),
        (json!({"overhead": {"cpu": "20m"}}), without),
        (
            json!({"runtimeClassName": "heavy", "nodeSelector": {"sandboxed": "no"}}),
            conflict,
        ),
    ] {
        cluster
            .post(PODS, &pod("odd", spec))
            .await
            .is_refused(403, message);
    }
    // The same amount in other words is the same.
    let same =
        json!({"runtimeClassName": "heavy", "overhead": {"cpu": "0.010", "memory": "1024Ki"}});
    cluster.post(PODS, &pod("c", same)).await.is(201, "a pod");
}

#[tokio::test]
async fn policies_see_what_nodes_and_pods_get() {
    let cluster = Cluster::start().await;
    for (plural, expression) in [
        (
            "pods",
            "object.spec.tolerations.exists(it, it.key == 'node.kubernetes.io/unreachable')",
        ),
        (
            "nodes",
            "object.spec.taints.exists(it, it.key == 'node.kubernetes.io/not-ready')",
        ),
    ] {
        let policy = json!({"metadata": {"name": plural}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "resources": [plural], "operations": ["CREATE"]}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'seen': 'yes'}}]"}}],
            "matchConditions": [{"name": "sees", "expression": expression}],
            "reinvocationPolicy": "Never"}});
        let made = cluster
            .post(&format!("{POLICIES}/mutatingadmissionpolicies"), &policy)
            .await;
        made.is(201, "a policy");
        let binding = json!({"metadata": {"name": plural}, "spec": {"policyName": plural}});
        let path = format!("{POLICIES}/mutatingadmissionpolicybindings");
        cluster.post(&path, &binding).await.is(201, "a binding");
    }
    let node = json!({"metadata": {"name": "n"}});
    for (path, object) in [(PODS, pod("p", json!({}))), ("/api/v1/nodes", node)] {
        let path = format!("{path}?dryRun=All");
        // Policies are followed a moment after they are written.
        eventually(
            DEADLINE,
            format!("{path}: the policy sees it"),
            async || {
                let made = cluster.post(&path, &object).await.is(201, "an object");
                made["metadata"]["labels"]["seen"] == "yes"
            },
        )
        .await;
    }
}
