//! Tests of the statuses that follow each other.

use super::*;
use crate::kubelet::stage::Stage;

fn pod() -> Value {
    json!({
        "metadata": {"name": "p", "uid": "u", "generation": 1},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [
                {"name": "first", "image": "i"},
                {"name": "beside", "image": "i", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "c", "image": "i"}],
            "readinessGates": [{"conditionType": "example.com/open"}],
        },
        "status": {"phase": "Pending"},
    })
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().expect("a time")
}

#[test]
fn a_pod_runs_is_ready_and_ends() {
    let mut pod = pod();
    assert_eq!(Stage::of(&pod), Stage::New);
    start(&mut pod, ("10.244.0.10", "172.18.0.2"), now());
    assert_eq!(Stage::of(&pod), Stage::Started);
    assert!(!pods::is_ready(&pod));
    let inits = &pod["status"]["initContainerStatuses"];
    assert_eq!(inits[0]["state"]["terminated"]["reason"], "Completed");
    assert!(inits[1]["state"]["running"].is_object());

    make_ready(&mut pod, now());
    assert_eq!(Stage::of(&pod), Stage::Ready);
    assert!(!pods::is_ready(&pod), "its gate is closed");
    note(&mut pod, "example.com/open", ConditionState::YES, now());
    renew(&mut pod, now());
    assert!(pods::is_ready(&pod));

    end(&mut pod, now());
    assert_eq!(Stage::of(&pod), Stage::Ended);
    assert!(!pods::is_ready(&pod));
    let container = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(container["exitCode"], 0);
    let beside = &pod["status"]["initContainerStatuses"][1];
    assert!(beside["state"]["terminated"].is_object());
}

#[test]
fn a_status_that_a_test_wrote_is_left_alone() {
    let mut written = pod();
    written["status"]["containerStatuses"] = json!([{"name": "c", "ready": false}]);
    assert_eq!(Stage::of(&written), Stage::Others);

    let mut pod = pod();
    start(&mut pod, ("10.244.0.10", "172.18.0.2"), now());
    make_ready(&mut pod, now());
    note(&mut pod, "example.com/open", ConditionState::YES, now());
    note(&mut pod, "Ready", ConditionState::no("Mine", ""), now());
    renew(&mut pod, now());
    assert!(!pods::is_ready(&pod));
    pod["status"]["containerStatuses"][0]["containerID"] = "containerd://x".into();
    assert_eq!(Stage::of(&pod), Stage::Others);
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let mut pod = pod();
    note(
        &mut pod,
        "Ready",
        ConditionState::no(CONTAINERS, "m"),
        now(),
    );
    let later = accessor::later(now(), 9);
    note(&mut pod, "Ready", ConditionState::no(GATES, "m"), later);
    let time =
        |pod: &Value| pods::condition(pod, "Ready").expect("one")["lastTransitionTime"].clone();
    assert_eq!(time(&pod), format_time(now()));
    note(&mut pod, "Ready", ConditionState::YES, later);
    assert_eq!(time(&pod), format_time(later));
}
