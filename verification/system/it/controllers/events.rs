//! The events of the scheduler and controllers, in both groups.

use serde_json::json;

use super::{Cluster, STRATEGIC};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/kube-system/events";

pub(super) async fn play(cluster: &Cluster) {
    let scheduler = cluster.user("system:kube-scheduler", "/api/v1/pods").await;
    // What it is about has no namespace.
    let seen = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Node", "name": "n1"}, "type": "Normal", "reason": "Seen", "action": "Looking",
        "eventTime": "2026-01-02T03:04:05.000006Z", "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1", "note": "n"});
    scheduler.post(EVENTS, &seen).await.object();
    let path = format!("{EVENTS}/e");
    let again = json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000006Z"}});
    let gone = scheduler
        .patch(&format!("{EVENTS}/gone"), STRATEGIC, &again)
        .await;
    gone.refused(404, r#"events.events.k8s.io "gone" not found"#);
    let series = scheduler.patch(&path, STRATEGIC, &again).await.object();
    assert_eq!(series["series"], again["series"]);
    for (patch, why) in [
        (
            json!({"series": {"count": 1}}),
            "series.count: Invalid value: \"\": should be at least 2",
        ),
        (
            json!({"reason": "Other"}),
            "reason: Invalid value: \"Other\": field is immutable",
        ),
    ] {
        let refused = scheduler.patch(&path, STRATEGIC, &patch).await;
        refused.refused(422, &format!("Event \"e\" is invalid: {why}"));
    }
    let mut unsigned = seen.clone();
    unsigned["metadata"]["name"] = json!("f");
    unsigned["action"] = json!("");
    let refused = scheduler.post(EVENTS, &unsigned).await;
    refused.refused(422, r#"Event "f" is invalid: action: Required value"#);
}
