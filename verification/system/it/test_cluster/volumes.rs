//! Claims and volumes under `--test-cluster=volumes`.

use http::Method;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::pod;

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

async fn started(flags: &[&str]) -> Cluster {
    let cluster = Cluster::with(flags).await;
    cluster
        .expect_there("/api/v1/namespaces/default/serviceaccounts/default")
        .await;
    cluster
}

fn volume(name: &str, size: &str, policy: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "persistentVolumeReclaimPolicy": policy, "hostPath": {"path": "/tmp"}}})
}

fn claim(name: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "2Gi"}}}})
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode})
}

fn has_phase(phase: &str) -> impl Fn(&Value) -> bool {
    move |it| it["status"]["phase"] == phase
}

async fn expect_phase(cluster: &Cluster, path: &str, phase: &str) -> Value {
    cluster.expect(path, has_phase(phase)).await
}

#[tokio::test]
async fn a_claim_is_bound_to_the_smallest_volume_and_releases_it() {
    let cluster = started(&["--test-cluster=volumes"]).await;
    for (name, size) in [("small", "1Gi"), ("large", "5Gi"), ("right", "3Gi")] {
        cluster.create(VOLUMES, volume(name, size, "Retain")).await;
        expect_phase(&cluster, &format!("{VOLUMES}/{name}"), "Available").await;
    }
    let created = cluster.create(CLAIMS, claim("c", "manual")).await;
    let path = format!("{CLAIMS}/c");
    let bound = expect_phase(&cluster, &path, "Bound").await;
    assert_eq!(bound["spec"]["volumeName"], "right");
    assert_eq!(bound["status"]["capacity"]["storage"], "3Gi");
    assert_eq!(bound["status"]["accessModes"], json!(["ReadWriteOnce"]));
    let annotations = &bound["metadata"]["annotations"];
    for name in ["bind-completed", "bound-by-controller"] {
        assert_eq!(annotations[format!("pv.kubernetes.io/{name}")], "yes");
    }
    let right = format!("{VOLUMES}/right");
    let found = expect_phase(&cluster, &right, "Bound").await;
    let reference = &found["spec"]["claimRef"];
    assert_eq!(reference["uid"], created["metadata"]["uid"]);
    assert_eq!(
        found["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"],
        "yes"
    );

    cluster.delete(&path, "Background").await;
    cluster.expect_gone(&path).await;
    expect_phase(&cluster, &right, "Released").await;
    // It is not bound again: the next claim gets the other one that suffices.
    cluster.create(CLAIMS, claim("next", "manual")).await;
    let next = expect_phase(&cluster, &format!("{CLAIMS}/next"), "Bound").await;
    assert_eq!(next["spec"]["volumeName"], "large");
    // An administrator frees it.
    let free = json!({"spec": {"claimRef": null}});
    cluster.write(Method::PATCH, &right, free).await;
    expect_phase(&cluster, &right, "Available").await;
}

#[tokio::test]
async fn a_claim_waits_for_a_volume_and_loses_it() {
    let cluster = started(&["--test-cluster=volumes"]).await;
    cluster.create(CLAIMS, claim("c", "manual")).await;
    let path = format!("{CLAIMS}/c");
    expect_phase(&cluster, &path, "Pending").await;
    cluster.create(VOLUMES, volume("v", "2Gi", "Delete")).await;
    expect_phase(&cluster, &path, "Bound").await;
    let there = format!("{VOLUMES}/v");
    cluster.delete(&there, "Background").await;
    let free = json!({"metadata": {"finalizers": null}});
    cluster.write(Method::PATCH, &there, free).await;
    cluster.expect_gone(&there).await;
    expect_phase(&cluster, &path, "Lost").await;
}

#[tokio::test]
async fn volumes_and_claims_may_name_each_other() {
    let cluster = started(&["--test-cluster=volumes"]).await;
    let mut kept = volume("kept", "9Gi", "Retain");
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "by-volume"});
    cluster.create(VOLUMES, kept).await;
    for name in ["free", "named"] {
        cluster.create(VOLUMES, volume(name, "2Gi", "Retain")).await;
        expect_phase(&cluster, &format!("{VOLUMES}/{name}"), "Available").await;
    }
    let mut naming = claim("by-claim", "manual");
    naming["spec"]["volumeName"] = "named".into();
    cluster.create(CLAIMS, naming).await;
    let bound = expect_phase(&cluster, &format!("{CLAIMS}/by-claim"), "Bound").await;
    assert_eq!(bound["spec"]["volumeName"], "named");
    let annotations = &bound["metadata"]["annotations"];
    assert!(annotations["pv.kubernetes.io/bound-by-controller"].is_null());

    let wanting = cluster.create(CLAIMS, claim("by-volume", "manual")).await;
    let bound = expect_phase(&cluster, &format!("{CLAIMS}/by-volume"), "Bound").await;
    assert_eq!(bound["spec"]["volumeName"], "kept");
    let kept = expect_phase(&cluster, &format!("{VOLUMES}/kept"), "Bound").await;
    let uid = &kept["spec"]["claimRef"]["uid"];
    assert_eq!(*uid, wanting["metadata"]["uid"]);

    let mut small = claim("asks-too-much", "manual");
    small["spec"]["volumeName"] = "free".into();
    small["spec"]["resources"]["requests"]["storage"] = "3Gi".into();
    cluster.create(CLAIMS, small).await;
    cluster.create(CLAIMS, claim("last", "manual")).await;
    let last = expect_phase(&cluster, &format!("{CLAIMS}/last"), "Bound").await;
    assert_eq!(last["spec"]["volumeName"], "free");
    expect_phase(&cluster, &format!("{CLAIMS}/asks-too-much"), "Pending").await;
}

#[tokio::test]
async fn a_volume_is_reclaimed_as_its_policy_says() {
    let cluster = started(&["--test-cluster=volumes"]).await;
    for policy in ["Delete", "Recycle"] {
        let name = policy.to_lowercase();
        cluster.create(VOLUMES, volume(&name, "2Gi", policy)).await;
        cluster.create(CLAIMS, claim(&name, "manual")).await;
        let (claim, volume) = (format!("{CLAIMS}/{name}"), format!("{VOLUMES}/{name}"));
        expect_phase(&cluster, &claim, "Bound").await;
        cluster.delete(&claim, "Background").await;
        if policy == "Delete" {
            cluster.expect_gone(&volume).await;
        } else {
            cluster
                .expect(&volume, |it| {
                    has_phase("Available")(it) && it["spec"]["claimRef"].is_null()
                })
                .await;
        }
    }
}

#[tokio::test]
async fn a_claim_of_a_class_waits_for_its_first_consumer_or_a_provisioner() {
    let cluster = started(&["--test-cluster=volumes,kubelet"]).await;
    let late = class(
        "manual",
        "kubernetes.io/no-provisioner",
        "WaitForFirstConsumer",
    );
    cluster.create(CLASSES, late).await;
    cluster
        .create(CLASSES, class("made", "example.com/maker", "Immediate"))
        .await;
    cluster.create(VOLUMES, volume("v", "2Gi", "Retain")).await;
    cluster.create(CLAIMS, claim("late", "manual")).await;
    cluster.create(CLAIMS, claim("made", "made")).await;
    let made = cluster
        .expect(&format!("{CLAIMS}/made"), |it| {
            let annotations = &it["metadata"]["annotations"];
            annotations["volume.kubernetes.io/storage-provisioner"] == "example.com/maker"
        })
        .await;
    assert_eq!(made["status"]["phase"], "Pending");
    expect_phase(&cluster, &format!("{VOLUMES}/v"), "Available").await;
    let path = format!("{CLAIMS}/late");
    expect_phase(&cluster, &path, "Pending").await;

    let mut user = pod("user");
    user["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]);
    cluster
        .create("/api/v1/namespaces/default/pods", user)
        .await;
    let bound = expect_phase(&cluster, &path, "Bound").await;
    assert_eq!(bound["spec"]["volumeName"], "v");
}
