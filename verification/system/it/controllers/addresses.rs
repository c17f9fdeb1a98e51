//! A range of addresses for services comes, is made ready and goes.

use serde_json::{Value, json};

use super::{APPLY, Actor, Cluster};

const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const MERGE: &str = "application/merge-patch+json";

const WRONG: &str = r#"ServiceCIDR.networking.k8s.io "more" is invalid: spec.cidrs"#;

pub(super) async fn play(cluster: &Cluster) {
    let admin = cluster.admin();
    refuse_new(&admin).await;
    make_ready(cluster, &admin).await;
    give_away(&admin).await;
}

/// Ranges that cannot be, before one that can.
async fn refuse_new(admin: &Actor) {
    let range = |cidrs: Value| json!({"metadata": {"name": "more"}, "spec": {"cidrs": cidrs}});
    for (cidrs, why) in [
        (json!([]), ": Required value: at least one CIDR required"),
        (
            json!(["10.9.0.0"]),
            "[0]: Invalid value: \"10.9.0.0\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        (
            json!(["10.9.0.1/24"]),
            "[0]: Invalid value: \"10.9.0.1/24\": must not have bits set beyond the prefix length",
        ),
        (
            json!(["FD00::/64"]),
            "[0]: Invalid value: \"FD00::/64\": must be in canonical form (\"fd00::/64\")",
        ),
    ] {
        let refused = admin.post(RANGES, &range(cidrs)).await;
        refused.refused(422, &format!("{WRONG}{why}"));
    }
    let both = admin
        .post(RANGES, &range(json!(["10.9.0.0/24", "10.8.0.0/24"])))
        .await;
    assert_eq!(both.code, 422);
    admin
        .post(RANGES, &range(json!(["10.9.0.0/24"])))
        .await
        .object();
}

/// The controller keeps a range and says that it is ready; only a range of the other family comes to it.
async fn make_ready(cluster: &Cluster, admin: &Actor) {
    let controller = cluster.controller("service-cidrs-controller", RANGES).await;
    let path = format!("{RANGES}/more");
    let applied = |member: &str, value: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": "more"}, member: value})
    };
    let by = "?fieldManager=service-cidr-controller&force=true";
    let mut kept = applied("spec", json!({}));
    kept["metadata"]["finalizers"] = json!(["networking.k8s.io/service-cidr-finalizer"]);
    kept.as_object_mut().expect("an object").remove("spec");
    controller
        .patch(&format!("{path}{by}"), APPLY, &kept)
        .await
        .object();
    let ready = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "",
        "message": "Kubernetes Service CIDR is ready", "lastTransitionTime": "2026-01-02T03:04:05Z"}]});
    let told = controller
        .patch(
            &format!("{path}/status{by}"),
            APPLY,
            &applied("status", ready.clone()),
        )
        .await;
    assert_eq!(told.object()["status"], ready);

    let moved = admin
        .patch(&path, MERGE, &json!({"spec": {"cidrs": ["10.7.0.0/24"]}}))
        .await;
    moved.refused(
        422,
        &format!("{WRONG}[0]: Invalid value: \"10.7.0.0/24\": field is immutable"),
    );
    let dual = admin
        .patch(
            &path,
            MERGE,
            &json!({"spec": {"cidrs": ["10.9.0.0/24", "fd00::/64"]}}),
        )
        .await;
    dual.object();
}

/// An address is somebody's.
async fn give_away(admin: &Actor) {
    let parent = json!({"group": "example.com", "resource": "things", "name": "t"});
    let address = |name: &str| json!({"metadata": {"name": name}, "spec": {"parentRef": parent}});
    admin
        .post(ADDRESSES, &address("192.168.7.1"))
        .await
        .object();
    let refused = admin.post(ADDRESSES, &address("FD00::1")).await;
    refused.refused(
        422,
        r#"IPAddress.networking.k8s.io "FD00::1" is invalid: metadata.name: Invalid value: "FD00::1": must be in canonical form ("fd00::1")"#,
    );
    let other = json!({"spec": {"parentRef": {"name": "u"}}});
    assert_eq!(
        admin
            .patch(&format!("{ADDRESSES}/192.168.7.1"), MERGE, &other)
            .await
            .code,
        422
    );
}
