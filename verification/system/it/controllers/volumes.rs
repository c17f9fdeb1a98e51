//! A claim and a volume find each other.

use serde_json::{Value, json};

use super::Cluster;

const VOLUME: &str = "/api/v1/persistentvolumes/v";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/c";

pub(super) async fn play(cluster: &Cluster) {
    let admin = cluster.admin();
    let (volumes, _) = VOLUME.rsplit_once('/').expect("a collection");
    let (claims, _) = CLAIM.rsplit_once('/').expect("a collection");
    let size = json!({"storage": "1Gi"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}}});
    let mut volume = admin.post(volumes, &volume).await.object();
    let mut claim = admin.post(claims, &claim).await.object();
    assert_eq!(volume["status"]["phase"], "Pending");
    assert_ne!(volume["status"]["lastPhaseTransitionTime"], Value::Null);

    let binder = cluster
        .controller("persistent-volume-binder", volumes)
        .await;
    volume["spec"]["claimRef"] = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
        "name": "c", "uid": claim["metadata"]["uid"], "resourceVersion": claim["metadata"]["resourceVersion"]});
    let mut volume = binder.put(VOLUME, &volume).await.object();
    let long_ago = json!("2020-01-02T03:04:05Z");
    volume["status"] = json!({"phase": "Bound", "lastPhaseTransitionTime": long_ago});
    let bound = binder
        .put(&format!("{VOLUME}/status"), &volume)
        .await
        .object();
    assert_eq!(bound["status"], volume["status"]);
    let mut released = bound.clone();
    released["status"]["phase"] = json!("Released");
    let released = binder
        .put(&format!("{VOLUME}/status"), &released)
        .await
        .object();
    assert_ne!(released["status"]["lastPhaseTransitionTime"], long_ago);

    claim["spec"]["volumeName"] = json!("v");
    let mut claim = binder.put(CLAIM, &claim).await.object();
    claim["status"] = json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size});
    let mut claim = binder
        .put(&format!("{CLAIM}/status"), &claim)
        .await
        .object();
    claim["spec"]["volumeName"] = json!("other");
    assert_eq!(binder.put(CLAIM, &claim).await.code, 422);

    // What is in use waits for the controller that protects it.
    admin
        .ask(http::Method::DELETE, CLAIM, super::JSON, &Value::Null)
        .await
        .object();
    let protection = cluster
        .controller("pvc-protection-controller", claims)
        .await;
    let mut going = protection.get(CLAIM).await.object();
    assert_eq!(
        going["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    going["metadata"]["finalizers"] = json!([]);
    protection.put(CLAIM, &going).await.object();
    assert_eq!(admin.get(CLAIM).await.code, 404);
}
