//! A claim to devices is allocated for a pod, and given back.

use serde_json::{Value, json};

use super::{Cluster, JSON};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const CLAIM: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c";
const STATUS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status";
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

pub(super) async fn play(cluster: &Cluster) {
    let admin = cluster.admin();
    let scheduler = cluster.user("system:kube-scheduler", CLAIMS).await;
    let controller = cluster
        .controller("resource-claim-controller", CLAIMS)
        .await;
    let claim = |request: Value| json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}});
    let what = r#"ResourceClaim.resource.k8s.io "c" is invalid"#;
    for (request, why) in [
        (
            json!({"name": "r"}),
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ),
        (
            json!({"name": "r", "exactly": {}}),
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
    ] {
        let refused = admin.post(CLAIMS, &claim(request)).await;
        refused.refused(422, &format!("{what}: {why}"));
    }
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let mut claim = controller.post(CLAIMS, &claim(request)).await.object();
    claim["metadata"]["finalizers"] = json!([FINALIZER]);
    let mut claim = scheduler.put(CLAIM, &claim).await.object();
    let mut other = claim.clone();
    other["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = json!("tpu");
    assert_eq!(admin.put(CLAIM, &other).await.code, 422);

    let users = json!([{"resource": "pods", "name": "p", "uid": "u"}]);
    claim["status"] = json!({"reservedFor": users});
    let refused = scheduler.put(STATUS, &claim).await;
    let why = "status.reservedFor: Forbidden: may not be specified when `allocated` is not set";
    refused.refused(422, &format!("{what}: {why}"));
    let device = |device: &str| json!({"devices": {"results": [{"request": "r", "driver": "d.example", "pool": "p", "device": device}]}});
    claim["status"] = json!({"reservedFor": users, "allocation": device("one")});
    let allocated = scheduler.put(STATUS, &claim).await.object();
    assert_eq!(allocated["status"], claim["status"]);
    let mut other = allocated.clone();
    other["status"]["allocation"] = device("two");
    let refused = scheduler.put(STATUS, &other).await;
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert_eq!(
        refused.body["details"]["causes"][0]["field"],
        "status.allocation"
    );

    // It is given back before it goes.
    let gone = admin
        .ask(http::Method::DELETE, CLAIM, JSON, &Value::Null)
        .await;
    gone.object();
    let mut going = controller.get(CLAIM).await.object();
    let later = json!([{"resource": "pods", "name": "q", "uid": "v"}]);
    going["status"]["reservedFor"] = later;
    assert_eq!(scheduler.put(STATUS, &going).await.code, 422);
    going["status"] = json!({});
    let mut free = controller.put(STATUS, &going).await.object();
    free["metadata"]["finalizers"] = json!([]);
    controller.put(CLAIM, &free).await.object();
    assert_eq!(admin.get(CLAIM).await.code, 404);
}
