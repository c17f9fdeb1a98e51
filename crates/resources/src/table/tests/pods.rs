//! Tests of the table of Pods.

use super::*;

/// Returns the cells Ready, Status and Restarts of a pod.
fn shown(spec: Value, status: Value) -> Value {
    let pod = json!({"metadata": {}, "spec": spec, "status": status});
    json!(cells("", "Pod", pod).as_array().expect("cells")[..3])
}

fn one_container(state: Value) -> Value {
    json!({"phase": "Running", "containerStatuses":
        [{"name": "c", "ready": true, "restartCount": 0, "state": state}]})
}

fn spec() -> Value {
    json!({"containers": [{"name": "c"}]})
}

#[test]
fn the_status_is_what_says_most() {
    for (state, ready, status) in [
        (json!({"running": {}}), "1/1", "Running"),
        (
            json!({"waiting": {"reason": "CrashLoopBackOff"}}),
            "0/1",
            "CrashLoopBackOff",
        ),
        (json!({"waiting": {}}), "0/1", "Running"),
        (
            json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
            "0/1",
            "Completed",
        ),
        (json!({"terminated": {"exitCode": 3}}), "0/1", "ExitCode:3"),
        (
            json!({"terminated": {"exitCode": 137, "signal": 9}}),
            "0/1",
            "Signal:9",
        ),
        (
            json!({"terminated": {"exitCode": 1, "reason": "OOMKilled"}}),
            "0/1",
            "OOMKilled",
        ),
    ] {
        assert_eq!(
            shown(spec(), one_container(state)),
            json!([ready, status, "0"])
        );
    }
    for (status, words) in [
        (json!({"phase": "Pending"}), "Pending"),
        (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
        (
            json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "SchedulingGated",
        ),
    ] {
        assert_eq!(shown(spec(), status), json!(["0/1", words, "0"]));
    }
}

#[test]
fn a_container_that_completed_beside_one_that_runs_is_not_the_end() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let status = |ready: &str| {
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"ready": false, "state": {"terminated": {"reason": "Completed"}}},
                {"ready": true, "state": {"running": {}}}]})
    };
    assert_eq!(
        shown(spec.clone(), status("True")),
        json!(["1/2", "Running", "0"])
    );
    assert_eq!(
        shown(spec, status("False")),
        json!(["1/2", "NotReady", "0"])
    );
}

#[test]
fn init_containers_come_first() {
    let spec = json!({"containers": [{"name": "c"}],
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
    let done = json!({"name": "i", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
    for (statuses, ready, status, restarts) in [
        (
            json!([{"name": "i", "state": {"running": {}}}]),
            "0/2",
            "Init:0/2",
            "0",
        ),
        (
            json!([{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]),
            "0/2",
            "Init:0/2",
            "0",
        ),
        (
            json!([{"name": "i", "restartCount": 4,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            "0/2",
            "Init:CrashLoopBackOff",
            "4",
        ),
        (
            json!([{"name": "i", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]),
            "0/2",
            "Init:Error",
            "0",
        ),
        (
            json!([{"name": "i", "state": {"terminated": {"exitCode": 2}}}]),
            "0/2",
            "Init:ExitCode:2",
            "0",
        ),
        (
            json!([done, {"name": "s", "state": {"running": {}}}]),
            "0/2",
            "Init:1/2",
            "1",
        ),
        // Sidecars count among the containers, and so do their restarts.
        (
            json!([done, {"name": "s", "started": true, "ready": true, "restartCount": 3,
                "state": {"running": {}}}]),
            "1/2",
            "Pending",
            "3",
        ),
    ] {
        let status_ = json!({"phase": "Pending", "initContainerStatuses": statuses});
        let found = shown(spec.clone(), status_);
        assert_eq!(found, json!([ready, status, restarts]), "{statuses}");
    }
    // In a pod that was initialized once, an init container that runs again does not hide the status of the others.
    let status = json!({"phase": "Running",
        "conditions": [{"type": "Initialized", "status": "True"}],
        "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "Error"}}}],
        "containerStatuses": [{"ready": false, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
    assert_eq!(shown(spec, status), json!(["0/2", "ImagePullBackOff", "0"]));
}

#[test]
fn restarts_tell_when_the_last_was() {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"ready": true, "restartCount": 2, "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": "2026-11-22T11:00:00Z"}}},
        {"ready": true, "restartCount": 5, "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": "2026-11-22T11:57:57Z"}}}]});
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(
        shown(spec, status),
        json!(["2/2", "Running", "7 (2m3s ago)"])
    );
}

#[test]
fn deletion_says_more_than_everything_else() {
    for (phase, reason, expected) in [
        ("Running", "", "Terminating"),
        ("Succeeded", "", "Succeeded"),
        ("Running", "NodeLost", "Unknown"),
    ] {
        let pod = json!({"metadata": {"deletionTimestamp": NOW}, "spec": spec(),
            "status": {"phase": phase, "reason": reason}});
        assert_eq!(cells("", "Pod", pod)[1], expected);
    }
}

#[test]
fn there_is_more_where_there_is_room() {
    let pod = json!({"metadata": {},
        "spec": {"nodeName": "n", "containers": [{}],
            "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]},
        "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}], "nominatedNodeName": "m",
            "conditions": [{"type": "x", "status": "True"}, {"type": "y", "status": "False"}]}});
    let found = cells("", "Pod", pod);
    assert_eq!(
        json!(found.as_array().expect("cells")[3..]),
        json!(["10.0.0.2", "n", "m", "1/2"])
    );
    let columns = convertor_of("", "Pod").columns();
    let wide: Vec<_> = columns
        .iter()
        .filter(|it| it.priority == 1)
        .map(|it| it.name)
        .collect();
    assert_eq!(wide, ["IP", "Node", "Nominated Node", "Readiness Gates"]);
}

#[test]
fn pods_that_are_through_say_so_beside_the_cells() {
    let reason = |phase: &str| {
        let row = row("", "Pod", &json!({"status": {"phase": phase}}));
        row.conditions
            .first()
            .map(|it| (it.kind, it.status, it.reason))
    };
    assert_eq!(
        reason("Succeeded"),
        Some(("Completed", "True", "Succeeded"))
    );
    assert_eq!(reason("Failed"), Some(("Completed", "True", "Failed")));
    assert_eq!(reason("Running"), None);
}
