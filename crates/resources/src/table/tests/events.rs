//! Tests of the table of Events.

use serde_json::json;

use super::cells;

#[test]
fn events_of_both_kinds_show_when_they_were_seen() {
    let event = json!({"metadata": {}, "type": "Warning", "reason": "BackOff", "message": " no luck\n",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "source": {"component": "kubelet", "host": "n"}, "count": 4,
        "firstTimestamp": "2026-11-22T11:00:00Z", "lastTimestamp": "2026-11-22T11:59:00Z"});
    assert_eq!(
        cells("", "Event", event),
        json!([
            "60s",
            "Warning",
            "BackOff",
            "pod/p",
            "spec.containers{c}",
            "kubelet, n",
            "no luck",
            "60m",
            4
        ])
    );
    let newer = json!({"metadata": {}, "type": "Normal", "reason": "Scheduled", "message": "ok",
        "involvedObject": {"kind": "Node"}, "reportingComponent": "scheduler", "reportingInstance": "s-1",
        "firstTimestamp": null, "lastTimestamp": null, "eventTime": "2026-11-22T11:50:00.000000Z"});
    assert_eq!(
        cells("events.k8s.io", "Event", newer.clone()),
        json!([
            "10m",
            "Normal",
            "Scheduled",
            "node",
            "",
            "scheduler, s-1",
            "ok",
            "10m",
            1
        ])
    );
    let mut series = newer;
    series["series"] = json!({"count": 9, "lastObservedTime": "2026-11-22T11:59:59.5Z"});
    let found = cells("events.k8s.io", "Event", series);
    assert_eq!((&found[0], &found[8]), (&json!("0s"), &json!(9)));
}
