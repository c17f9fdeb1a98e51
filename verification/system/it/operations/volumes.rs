//! Claims to volumes grow if their class lets them.

use serde_json::json;

use super::Cluster;

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

#[tokio::test]
async fn claims_grow_if_their_class_lets_them() {
    let cluster = Cluster::start().await;
    for (name, grows) in [("fixed", false), ("growing", true)] {
        let class = json!({"metadata": {"name": name}, "provisioner": "example.com/none",
            "allowVolumeExpansion": grows});
        cluster.post(CLASSES, &class).await.is(201, "a class");
        let claim = json!({"metadata": {"name": name}, "spec": {"storageClassName": name,
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "v"}});
        cluster.post(CLAIMS, &claim).await.is(201, "a claim");
    }
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let [fixed, growing] = ["fixed", "growing"].map(|name| format!("{CLAIMS}/{name}"));
    // What is not bound yet cannot grow at all.
    assert_eq!(cluster.patch(&growing, &larger).await.code, 422);

    // The controller binds both.
    let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
    for claim in [&fixed, &growing] {
        let answer = cluster.patch(&format!("{claim}/status"), &bound).await;
        answer.is(200, "a bound claim");
    }
    let refused = cluster.patch(&fixed, &larger).await;
    refused.is_refused(403, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize");
    let grown = cluster
        .patch(&growing, &larger)
        .await
        .is(200, "a larger claim");
    assert_eq!(grown["spec"]["resources"]["requests"]["storage"], "2Gi");
}
