//! Tests of the tables of namespaces, leases, classes, components and APIServices.

use serde_json::{Value, json};

use super::cells;

#[test]
fn namespaces_and_leases_show_their_state() {
    let namespace = json!({"status": {"phase": "Terminating"}});
    assert_eq!(cells("", "Namespace", namespace), json!(["Terminating"]));
    let lease = json!({"spec": {"holderIdentity": "me"}});
    assert_eq!(cells("coordination.k8s.io", "Lease", lease), json!(["me"]));
}

#[test]
fn component_statuses_show_what_was_said() {
    let shown = |conditions: Value| {
        let object = json!({"conditions": conditions});
        cells("", "ComponentStatus", object)
    };
    let ill = json!([{"type": "Healthy", "status": "False", "message": "m", "error": "e"}]);
    assert_eq!(shown(ill), json!(["Unhealthy", "m", "e"]));
    let well = json!([{"type": "Healthy", "status": "True", "message": "ok"}]);
    assert_eq!(shown(well), json!(["Healthy", "ok", ""]));
    assert_eq!(shown(json!([])), json!(["Unknown", "", ""]));
}

#[test]
fn classes_show_what_they_stand_for() {
    let class = json!({"value": 100, "globalDefault": true, "preemptionPolicy": "Never"});
    assert_eq!(
        cells("scheduling.k8s.io", "PriorityClass", class),
        json!([100, true, "Never"])
    );
    assert_eq!(
        cells("node.k8s.io", "RuntimeClass", json!({"handler": "h"})),
        json!(["h"])
    );
}

#[test]
fn api_services_show_whether_they_are_there() {
    let shown = |spec: Value, conditions: Value| {
        let object = json!({"spec": spec, "status": {"conditions": conditions}});
        cells("apiregistration.k8s.io", "APIService", object)
    };
    let local = shown(
        json!({}),
        json!([{"type": "Available", "status": "True", "reason": "Local"}]),
    );
    assert_eq!(local, json!(["Local", "True"]));
    let remote = json!({"service": {"namespace": "ns", "name": "s"}});
    let failed = json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]);
    assert_eq!(
        shown(remote, failed),
        json!(["ns/s", "False (MissingEndpoints)"])
    );
    assert_eq!(shown(json!({}), json!([])), json!(["Local", "Unknown"]));
}
