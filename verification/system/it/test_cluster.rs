//! The controllers of `--test-cluster`, as a test of an operator sees them.

mod cluster;
mod endpoints;
mod kubelet;
mod volumes;
mod workloads;

use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use self::cluster::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn gear(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": name}})
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn owned_by(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    object
}

fn condition<'a>(namespace: &'a Value, name: &str) -> &'a Value {
    let conditions = namespace["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .find(|it| it["type"] == name)
        .unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let cluster = Cluster::start().await;
    cluster.define_gears().await;
    cluster.namespace("goes").await;
    let within = "/api/v1/namespaces/goes";
    cluster.create(&format!("{within}/pods"), pod("p")).await;
    cluster
        .create(&format!("{within}/configmaps"), config_map("c"))
        .await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster
        .create(&format!("{within}/persistentvolumeclaims"), claim)
        .await;
    let mut held = gear("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let gears = "/apis/example.com/v1/namespaces/goes/gears";
    cluster.create(gears, held).await;
    cluster.create(gears, gear("free")).await;

    cluster.delete(within, "Background").await;
    let namespace = cluster
        .expect(within, |it| {
            let message = &condition(it, "NamespaceContentRemaining")["message"];
            message == "Some resources are remaining: gears.example.com has 1 resource instances"
        })
        .await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(
        condition(&namespace, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    );
    assert!(cluster.get(&format!("{gears}/held")).await.is_some());

    let free = json!({"metadata": {"finalizers": null}});
    cluster
        .write(Method::PATCH, &format!("{gears}/held"), free)
        .await;
    cluster.expect_gone(within).await;
    // Nothing of it comes back with a namespace of the same name but what each has.
    cluster.namespace("goes").await;
    cluster.expect_gone(&format!("{within}/configmaps/c")).await;
    cluster.expect_gone(&format!("{gears}/free")).await;
}

#[tokio::test]
async fn each_namespace_has_an_account_and_the_authority() {
    let cluster = Cluster::start().await;
    cluster.namespace("new").await;
    let account = "/api/v1/namespaces/new/serviceaccounts/default";
    let authority = "/api/v1/namespaces/new/configmaps/kube-root-ca.crt";
    let expected = cluster.server.certificate_authority().to_owned();
    let is_right = |it: &Value| it["data"] == json!({"ca.crt": expected});
    let published = cluster.expect(authority, is_right).await;
    let why = &published["metadata"]["annotations"]["kubernetes.io/description"];
    assert!(
        why.as_str()
            .is_some_and(|it| it.starts_with("Contains a CA bundle")),
        "{published}"
    );
    // Admission takes pods that name no account, and gives them this one.
    let pod = cluster
        .create("/api/v1/namespaces/new/pods", pod("p"))
        .await;
    assert_eq!(pod["spec"]["serviceAccountName"], "default");

    let old = cluster.get(account).await.expect("an account");
    cluster.delete(account, "Background").await;
    cluster
        .expect(account, |it| {
            it["metadata"]["uid"] != old["metadata"]["uid"]
        })
        .await;
    let wrong = json!({"data": {"ca.crt": "wrong", "more": "x"}});
    cluster.write(Method::PATCH, authority, wrong).await;
    cluster.expect(authority, is_right).await;
    cluster.delete(authority, "Background").await;
    cluster.expect(authority, is_right).await;
}

#[tokio::test]
async fn dependents_of_custom_resources_go_with_them_or_are_orphaned() {
    let cluster = Cluster::start().await;
    cluster.define_gears().await;
    let (gears, config_maps) = (
        "/apis/example.com/v1/namespaces/default/gears",
        "/api/v1/namespaces/default/configmaps",
    );
    for (policy, stays) in [
        ("Background", false),
        ("Foreground", false),
        ("Orphan", true),
    ] {
        let owner = cluster.create(gears, gear("owner")).await;
        let child = cluster.create(gears, owned_by(gear("child"), &owner)).await;
        cluster
            .create(config_maps, owned_by(config_map("grandchild"), &child))
            .await;
        cluster.delete(&format!("{gears}/owner"), policy).await;
        cluster.expect_gone(&format!("{gears}/owner")).await;
        if stays {
            let child = cluster.expect_there(&format!("{gears}/child")).await;
            assert!(child["metadata"]["ownerReferences"].is_null(), "{child}");
            cluster
                .expect_there(&format!("{config_maps}/grandchild"))
                .await;
        } else {
            cluster.expect_gone(&format!("{gears}/child")).await;
            cluster
                .expect_gone(&format!("{config_maps}/grandchild"))
                .await;
        }
    }
}

#[tokio::test]
async fn a_finished_job_goes_when_its_time_is_over() {
    let cluster = Cluster::start().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = |name: &str, seconds: u32| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
            "ttlSecondsAfterFinished": seconds,
            "template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let owner = cluster.create(jobs, job("goes", 0)).await;
    cluster.create(jobs, job("stays", 2_000_000_000)).await;
    let pods = "/api/v1/namespaces/default/pods";
    cluster
        .expect_there("/api/v1/namespaces/default/serviceaccounts/default")
        .await;
    cluster.create(pods, owned_by(pod("p"), &owner)).await;
    for name in ["goes", "stays"] {
        let now = "2026-01-02T03:04:05Z";
        let failed = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": "R", "message": "m"});
        let status = json!({"status": {"startTime": now, "failed": 1,
            "conditions": [failed("FailureTarget"), failed("Failed")]}});
        cluster
            .write(Method::PATCH, &format!("{jobs}/{name}/status"), status)
            .await;
    }
    cluster.expect_gone(&format!("{jobs}/goes")).await;
    cluster.expect_gone(&format!("{pods}/p")).await;
    assert!(cluster.get(&format!("{jobs}/stays")).await.is_some());
}

#[tokio::test]
async fn claims_and_volumes_in_use_stay_until_nobody_uses_them() {
    let cluster = Cluster::start().await;
    let within = "/api/v1/namespaces/default";
    cluster
        .expect_there(&format!("{within}/serviceaccounts/default"))
        .await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster
        .create(&format!("{within}/persistentvolumeclaims"), claim)
        .await;
    let mut user = pod("user");
    user["spec"]["nodeName"] = "n".into();
    user["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]);
    cluster.create(&format!("{within}/pods"), user).await;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}});
    cluster.create("/api/v1/persistentvolumes", volume).await;
    let (claim, volume) = (
        format!("{within}/persistentvolumeclaims/claim"),
        "/api/v1/persistentvolumes/volume",
    );
    let bound = json!({"status": {"phase": "Bound"}});
    cluster
        .write(Method::PATCH, &format!("{volume}/status"), bound)
        .await;
    cluster.delete(&claim, "Background").await;
    cluster.delete(volume, "Background").await;

    // Another claim that is deleted later is looked at later.
    let next = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "next"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster
        .create(&format!("{within}/persistentvolumeclaims"), next)
        .await;
    let next = format!("{within}/persistentvolumeclaims/next");
    cluster.delete(&next, "Background").await;
    cluster.expect_gone(&next).await;
    assert!(cluster.get(&claim).await.is_some(), "a pod uses it");
    assert!(cluster.get(volume).await.is_some(), "it is bound");

    let released = json!({"status": {"phase": "Released"}});
    cluster
        .write(Method::PATCH, &format!("{volume}/status"), released)
        .await;
    cluster.expect_gone(volume).await;
    let at_once = json!({"gracePeriodSeconds": 0});
    cluster
        .write(Method::DELETE, &format!("{within}/pods/user"), at_once)
        .await;
    cluster.expect_gone(&claim).await;
}

#[tokio::test]
async fn a_type_that_cannot_be_read_keeps_nobody_else_from_being_collected() {
    let cluster = Cluster::start().await;
    cluster.define_gears().await;
    // Events alone are not collected, of which these have but the name.
    cluster.define("events", "Event").await;
    let gears = "/apis/example.com/v1/namespaces/default/gears";
    cluster.create(gears, gear("unreadable")).await;
    let unreachable = json!({"spec": {
        "conversion": {"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:9/convert"},
        }},
        "versions": [
            {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    }});
    let definition = format!("{DEFINITIONS}/gears.example.com");
    cluster.write(Method::PATCH, &definition, unreachable).await;
    eventually(DEADLINE, "Gears cannot be read", async || {
        cluster
            .get("/apis/example.com/v2/namespaces/default/gears")
            .await
            .is_none()
    })
    .await;
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let events = "/apis/example.com/v1/namespaces/default/events";
    let owner = cluster.create(config_maps, config_map("owner")).await;
    cluster
        .create(config_maps, owned_by(config_map("child"), &owner))
        .await;
    let event =
        json!({"apiVersion": "example.com/v1", "kind": "Event", "metadata": {"name": "child"}});
    cluster.create(events, owned_by(event, &owner)).await;
    cluster
        .delete(&format!("{config_maps}/owner"), "Background")
        .await;
    cluster.expect_gone(&format!("{config_maps}/child")).await;
    cluster.expect_gone(&format!("{events}/child")).await;
}

#[tokio::test]
async fn the_authority_is_published_where_no_account_may_be_made() {
    let cluster = Cluster::start().await;
    cluster.namespace("tight").await;
    let within = "/api/v1/namespaces/tight";
    let authority = format!("{within}/configmaps/kube-root-ca.crt");
    cluster.expect_there(&authority).await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/serviceaccounts": "0"}}});
    cluster
        .create(&format!("{within}/resourcequotas"), quota)
        .await;
    let status = json!({"status": {"hard": {"count/serviceaccounts": "0"}, "used": {"count/serviceaccounts": "0"}}});
    let path = format!("{within}/resourcequotas/none/status");
    cluster.write(Method::PATCH, &path, status).await;
    cluster
        .delete(&format!("{within}/serviceaccounts/default"), "Background")
        .await;
    cluster.delete(&authority, "Background").await;
    cluster.expect_there(&authority).await;
}
