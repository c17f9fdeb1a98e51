//! The conditions of a Deployment over the time of its rollout, and the sums of its pods.

use super::*;

const START: &str = "2026-01-02T03:04:05Z";

fn deployment(seconds: i64) -> Value {
    json!({
        "metadata": {"name": "d", "generation": 2},
        "spec": {"replicas": 4, "progressDeadlineSeconds": seconds, "strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
    })
}

fn set(name: &str, wanted: i64, replicas: i64, available: i64) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"replicas": wanted},
        "status": {"observedGeneration": 1, "replicas": replicas, "readyReplicas": available,
            "availableReplicas": available, "terminatingReplicas": 1},
    })
}

fn rollout(deployment: Value, new: Value, old: Value) -> Rollout {
    let mut rollout = Rollout::new(deployment, Vec::new());
    (rollout.new, rollout.old) = (Some(new), vec![old]);
    rollout
}

fn at(seconds: i64) -> Timestamp {
    accessor::later(START.parse().expect("a time"), seconds)
}

/// Returns the reason, the status and the times of the last update and transition.
fn told(rollout: &Rollout, kind: &str) -> [String; 4] {
    let condition = conditions::get(&rollout.status, kind).expect("a condition");
    let members = ["reason", "status", "lastUpdateTime", "lastTransitionTime"];
    members.map(|it| condition[it].as_str().unwrap_or_default().to_owned())
}

fn expected(reason: &str, status: &str, updated: i64, changed: i64) -> [String; 4] {
    let time = |seconds| accessor::format_time(at(seconds));
    [
        reason.to_owned(),
        status.to_owned(),
        time(updated),
        time(changed),
    ]
}

#[test]
fn pods_are_counted_over_all_sets() {
    let mut rollout = rollout(deployment(600), set("new", 2, 2, 1), set("old", 3, 3, 2));
    count(&mut rollout, at(0));
    let mut status = rollout.status.clone();
    status.remove("conditions");
    assert_eq!(
        Value::from(status),
        json!({"observedGeneration": 2, "replicas": 5, "updatedReplicas": 2, "readyReplicas": 3,
            "availableReplicas": 3, "unavailableReplicas": 2, "terminatingReplicas": 2})
    );
    assert_eq!(
        told(&rollout, "Available"),
        expected("MinimumReplicasAvailable", "True", 0, 0)
    );
    rollout.old[0] = set("old", 0, 0, 0);
    count(&mut rollout, at(5));
    assert_eq!(
        told(&rollout, "Available"),
        expected("MinimumReplicasUnavailable", "False", 5, 5)
    );
    // One that has been seen, but does not tell what is ending, leaves the sum unknown; one not yet seen does not.
    rollout.old[0]["status"]["terminatingReplicas"] = Value::Null;
    rollout.old[0]["status"]
        .as_object_mut()
        .expect("a status")
        .remove("terminatingReplicas");
    count(&mut rollout, at(5));
    assert_eq!(rollout.status.get("terminatingReplicas"), None);
    rollout.old[0]["status"] = json!({"replicas": 0});
    count(&mut rollout, at(5));
    assert_eq!(rollout.status["terminatingReplicas"], 1);
}

#[test]
fn a_rollout_progresses_until_it_is_complete_or_its_time_is_over() {
    let mut rollout = rollout(deployment(600), set("new", 1, 0, 0), set("old", 4, 4, 4));
    tell_of_new(&mut rollout, ("NewReplicaSetCreated", "m"), "True", at(0));
    assert_eq!(
        progress(&mut rollout, at(1)),
        Some(at(601)),
        "pods become available"
    );
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected("ReplicaSetUpdated", "True", 1, 0)
    );
    assert_eq!(progress(&mut rollout, at(2)), Some(at(601)));
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected("ReplicaSetUpdated", "True", 1, 0)
    );
    rollout.new = Some(set("new", 1, 1, 0));
    assert_eq!(progress(&mut rollout, at(10)), Some(at(610)));
    assert_eq!(progress(&mut rollout, at(610)), Some(at(610)));
    assert_eq!(progress(&mut rollout, at(611)), None);
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected(TIMED_OUT, "False", 611, 611)
    );
    rollout.deployment["spec"]["paused"] = true.into();
    pause_or_resume(&mut rollout, at(612));
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected(TIMED_OUT, "False", 611, 611)
    );
    (rollout.new, rollout.old) = (Some(set("new", 4, 4, 4)), vec![set("old", 0, 0, 0)]);
    assert_eq!(progress(&mut rollout, at(700)), None);
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected(AVAILABLE, "True", 700, 700)
    );
    // A pod that is lost later begins no rollout.
    rollout.new = Some(set("new", 4, 4, 3));
    assert_eq!(progress(&mut rollout, at(9000)), None);
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected(AVAILABLE, "True", 700, 700)
    );
}

#[test]
fn a_pause_is_told_and_its_time_does_not_count() {
    let mut rollout = rollout(deployment(600), set("new", 1, 0, 0), set("old", 4, 0, 0));
    tell_of_new(&mut rollout, ("NewReplicaSetCreated", "m"), "True", at(0));
    pause_or_resume(&mut rollout, at(1));
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected("NewReplicaSetCreated", "True", 0, 0)
    );
    rollout.deployment["spec"]["paused"] = true.into();
    pause_or_resume(&mut rollout, at(2));
    pause_or_resume(&mut rollout, at(3));
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected(PAUSED, "Unknown", 2, 2)
    );
    rollout.deployment["spec"]["paused"] = false.into();
    pause_or_resume(&mut rollout, at(9000));
    assert_eq!(
        told(&rollout, PROGRESSING),
        expected("DeploymentResumed", "Unknown", 9000, 2)
    );
    assert_eq!(progress(&mut rollout, at(9001)), Some(at(9600)));
}

#[test]
fn nobody_who_has_no_deadline_is_told_of_progress() {
    let mut rollout = rollout(
        deployment(NO_DEADLINE),
        set("new", 1, 0, 0),
        set("old", 4, 0, 0),
    );
    tell_of_new(&mut rollout, ("NewReplicaSetCreated", "m"), "True", at(0));
    assert_eq!(progress(&mut rollout, at(0)), None);
    assert!(!tells_of_progress(&rollout));
}

#[test]
fn the_failure_of_the_new_set_is_told_before_that_of_another() {
    let failing = |mut set: Value, message: &str| {
        set["status"]["conditions"] = json!([{"type": FAILURE, "status": "True", "reason": "FailedCreate",
            "message": message, "lastTransitionTime": START}]);
        set
    };
    let old = failing(set("old", 4, 0, 0), "old");
    let mut rollout = rollout(deployment(600), failing(set("new", 1, 0, 0), "new"), old);
    progress(&mut rollout, at(1));
    let failure = conditions::get(&rollout.status, FAILURE).expect("a failure");
    assert_eq!(
        (&failure["message"], &failure["lastUpdateTime"]),
        (&json!("new"), &json!(START))
    );
    rollout.new = Some(set("new", 1, 1, 0));
    rollout.old = vec![set("old", 4, 4, 4)];
    progress(&mut rollout, at(2));
    assert_eq!(conditions::get(&rollout.status, FAILURE), None);
}
