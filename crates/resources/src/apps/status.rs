//! Statuses of the controllers of pods: counts that are not negative and do not contradict each other.
//!
//! Follows pkg/apis/apps/validation/validation.go and, for ReplicationControllers,
//! pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use serde_json::Value;

use crate::validation::field::{Errors, Field};

const MORE_THAN_ALL: &str = "cannot be greater than status.replicas";
const MORE_THAN_READY: &str = "cannot be greater than readyReplicas";

/// Checks an update of the status of a Deployment. Follows `ValidateDeploymentStatusUpdate`.
pub(super) fn deployment(object: &Value, old: &Value) -> Errors {
    let (object, old) = (Field::root(object), Field::root(old));
    let status = object.at("status");
    let mut errors = Errors::new();
    counts(
        &status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        &mut errors,
    );
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    parts_of_replicas(&status, &parts, MORE_THAN_READY, &mut errors);
    collisions_stay(&status, &old, &mut errors);
    errors
}

/// Checks an update of the status of a ReplicaSet or ReplicationController. Follows `ValidateReplicaSetStatusUpdate`
/// and `ValidateReplicationControllerStatusUpdate`.
pub(crate) fn replica_set(object: &Value, _old: &Value) -> Errors {
    let object = Field::root(object);
    let status = object.at("status");
    let mut errors = Errors::new();
    counts(
        &status,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        &mut errors,
    );
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    parts_of_replicas(&status, &parts, MORE_THAN_READY, &mut errors);
    errors
}

/// Checks an update of the status of a StatefulSet. Follows `ValidateStatefulSetStatusUpdate`.
pub(super) fn stateful_set(object: &Value, old: &Value) -> Errors {
    let (object, old) = (Field::root(object), Field::root(old));
    let status = object.at("status");
    let mut errors = Errors::new();
    let parts = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    counts(&status, &["replicas"], &mut errors);
    counts(&status, &parts, &mut errors);
    counts(
        &status,
        &["observedGeneration", "collisionCount"],
        &mut errors,
    );
    let why = "cannot be greater than status.readyReplicas";
    parts_of_replicas(&status, &parts, why, &mut errors);
    collisions_stay(&status, &old, &mut errors);
    errors
}

/// Checks an update of the status of a DaemonSet. Follows `ValidateDaemonSetStatusUpdate`.
pub(super) fn daemon_set(object: &Value, old: &Value) -> Errors {
    let (object, old) = (Field::root(object), Field::root(old));
    let status = object.at("status");
    let mut errors = Errors::new();
    counts(
        &status,
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        &mut errors,
    );
    collisions_stay(&status, &old, &mut errors);
    errors
}

fn counts(status: &Field<'_, '_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        status.at(name).must_not_be_negative(errors);
    }
}

/// Checks that no count of some of the replicas exceeds that of all, and that of the available ones not that of the
/// ready ones, about which the error says `more_than_ready`.
fn parts_of_replicas(
    status: &Field<'_, '_>,
    parts: &[&str],
    more_than_ready: &str,
    errors: &mut Errors,
) {
    let count = |name: &str| status.at(name).number().unwrap_or(0);
    for part in parts.iter().filter(|it| count(it) > count("replicas")) {
        errors.push(status.at(part).invalid_value(count(part), MORE_THAN_ALL));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let available = status.at("availableReplicas");
        errors.push(available.invalid_value(count("availableReplicas"), more_than_ready));
    }
}

/// Checks that the count of collisions of names does not fall.
fn collisions_stay(status: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let now = status.at("collisionCount");
    let before = old.at("status.collisionCount").number();
    if before.is_some_and(|before| before > now.number().unwrap_or(0)) {
        let shown = now.number().unwrap_or(0);
        errors.push(now.invalid_value(shown, "cannot be decremented"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    #[test]
    fn counts_are_parts_of_each_other() {
        type Status = fn(&Value, &Value) -> Errors;
        let cases: [(Status, Value, &[&str]); 8] = [
            (
                deployment,
                json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}),
                &[],
            ),
            (
                deployment,
                json!({"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "collisionCount": 2}),
                &[
                    "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
                    "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
                    "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
                ],
            ),
            (
                deployment,
                json!({"collisionCount": 1}),
                &["status.collisionCount: Invalid value: 1: cannot be decremented"],
            ),
            (
                replica_set,
                json!({"replicas": 1, "fullyLabeledReplicas": 2}),
                &[
                    "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
                ],
            ),
            (
                replica_set,
                json!({"replicas": -1}),
                &[
                    "status.replicas: Invalid value: -1: must be greater than or equal to 0",
                    "status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas",
                    "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
                    "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
                ],
            ),
            (
                stateful_set,
                json!({"replicas": 2, "availableReplicas": 1, "currentReplicas": 3, "collisionCount": 2}),
                &[
                    "status.currentReplicas: Invalid value: 3: cannot be greater than status.replicas",
                    "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas",
                ],
            ),
            (
                daemon_set,
                json!({"numberReady": 1, "collisionCount": 3}),
                &[],
            ),
            (
                daemon_set,
                json!({"numberReady": -1}),
                &[
                    "status.numberReady: Invalid value: -1: must be greater than or equal to 0",
                    "status.collisionCount: Invalid value: 0: cannot be decremented",
                ],
            ),
        ];
        let old = json!({"status": {"collisionCount": 2}});
        for (check, mut status, wrong) in cases {
            if wrong.is_empty() {
                status["collisionCount"] = json!(2);
            }
            let object = json!({"status": status});
            assert_eq!(messages(&check(&object, &old)), *wrong, "{object}");
        }
    }
}
