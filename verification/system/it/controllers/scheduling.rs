//! The way from a deployment to pods that run on nodes.

use serde_json::{Value, json};

use super::{Cluster, PODS, STRATEGIC, controlled_by, name, pod};

const APPS: &str = "/apis/apps/v1/namespaces/default";

pub(super) async fn play(cluster: &Cluster) {
    let set = replica_set(cluster).await;
    let pod = pod_of(cluster, &set).await;
    bind(cluster, &pod).await;
}

/// A deployment gets a replica set; its own status changes nothing else.
async fn replica_set(cluster: &Cluster) -> Value {
    let labels = json!({"app": "web"});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    let deployments = format!("{APPS}/deployments");
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
    let made = cluster.admin().post(&deployments, &deployment).await;
    let mut deployment = made.object();

    let controller = cluster
        .controller("deployment-controller", &deployments)
        .await;
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "labels": labels,
        "ownerReferences": controlled_by(&deployment)}, "spec": spec});
    let sets = format!("{APPS}/replicasets");
    let made = controller.post(&sets, &set).await.object();
    let again = controller.post(&sets, &set).await;
    assert_eq!(again.body["reason"], "AlreadyExists");
    again.refused(409, r#"replicasets.apps "web-1" already exists"#);

    // A deployment counts its annotations as well.
    let path = format!("{deployments}/web");
    deployment["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    let mut deployment = controller.put(&path, &deployment).await.object();
    assert_eq!(deployment["metadata"]["generation"], 2);
    deployment["status"] =
        json!({"observedGeneration": 2, "replicas": 1, "terminatingReplicas": 0});
    deployment["spec"]["replicas"] = json!(7);
    deployment["metadata"]["labels"] = json!({"not": "mine"});
    let told = controller
        .put(&format!("{path}/status"), &deployment)
        .await
        .object();
    assert_eq!(told["status"], deployment["status"]);
    assert_eq!(told["spec"]["replicas"], 1);
    assert_eq!(told["metadata"].get("labels"), None);
    assert_eq!(told["metadata"]["generation"], 2);
    made
}

/// The replica set makes a pod, lets it go and takes it back.
async fn pod_of(cluster: &Cluster, set: &Value) -> Value {
    let controller = cluster.controller("replicaset-controller", PODS).await;
    let owners = controlled_by(set);
    let wanted = pod(&json!({"generateName": "web-1-", "ownerReferences": owners,
        "finalizers": ["batch.kubernetes.io/job-tracking"]}));
    let made = controller.post(PODS, &wanted).await.object();
    let path = format!("{PODS}/{}", name(&made));
    let (uid, of) = (&made["metadata"]["uid"], &set["metadata"]["uid"]);
    let other =
        json!({"metadata": {"uid": "other", "ownerReferences": [{"$patch": "delete", "uid": of}]}});
    let refused = controller.patch(&path, STRATEGIC, &other).await;
    // Controllers take this for a pod that is another by now.
    assert_eq!(refused.body["reason"], "Invalid");
    let release = json!({"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": of}],
        "$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"]}});
    let released = controller.patch(&path, STRATEGIC, &release).await.object();
    for gone in ["ownerReferences", "finalizers"] {
        assert_eq!(released["metadata"].get(gone), None, "{released}");
    }
    let adopt = json!({"metadata": {"uid": uid, "ownerReferences": owners}});
    let adopted = controller.patch(&path, STRATEGIC, &adopt).await.object();
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["uid"], *of);
    adopted
}

/// The scheduler says why a pod waits and where it is to go, and binds it.
async fn bind(cluster: &Cluster, pod: &Value) {
    let place = json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"});
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": place}});
    let admin = cluster.admin();
    admin.post("/api/v1/nodes", &node).await.object();
    let scheduler = cluster.user("system:kube-scheduler", "/api/v1/pods").await;
    let path = format!("{PODS}/{}", name(pod));
    let waits = json!({"status": {"nominatedNodeName": "n1", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available",
        "observedGeneration": 1}]}});
    let waiting = scheduler
        .patch(&format!("{path}/status"), STRATEGIC, &waits)
        .await
        .object();
    assert_eq!(waiting["status"]["nominatedNodeName"], "n1");

    let binding = |pod: &str, uid: &Value| {
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "uid": uid},
            "target": {"kind": "Node", "name": "n1"}})
    };
    let to_node = format!("{path}/binding");
    let right = binding(name(pod), &pod["metadata"]["uid"]);
    for (member, value) in [("uid", "other"), ("resourceVersion", "1")] {
        let mut wrong = right.clone();
        wrong["metadata"][member] = json!(value);
        let refused = scheduler.post(&to_node, &wrong).await;
        let found = (refused.code, &refused.body["reason"]);
        assert_eq!(found, (409, &json!("Conflict")), "{member}");
    }
    scheduler.post(&to_node, &right).await.object();
    let bound = admin.get(&path).await.object();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"].get("nominatedNodeName"), None);
    let scheduled = &bound["status"]["conditions"][0];
    assert_eq!(
        (&scheduled["type"], &scheduled["status"]),
        (&json!("PodScheduled"), &json!("True"))
    );
    assert_eq!(
        bound["metadata"]["labels"],
        json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"})
    );
    let again = scheduler.post(&to_node, &right).await;
    again.refused(
        409,
        &format!(
            r#"Operation cannot be fulfilled on pods/binding "{0}": pod {0} is already assigned to node "n1""#,
            name(pod)
        ),
    );
    let gone = scheduler
        .post(
            &format!("{PODS}/gone/binding"),
            &binding("gone", &json!("u")),
        )
        .await;
    gone.refused(404, r#"pods "gone" not found"#);

    // Whoever comes with a node is told of it as well, but keeps what it says itself.
    let mut placed =
        super::pod(&json!({"name": "placed", "labels": {"topology.kubernetes.io/zone": "mine"}}));
    placed["spec"]["nodeName"] = json!("n1");
    let placed = admin.post(PODS, &placed).await.object();
    assert_eq!(
        placed["metadata"]["labels"],
        json!({"topology.kubernetes.io/zone": "mine", "topology.kubernetes.io/region": "r"})
    );
}
