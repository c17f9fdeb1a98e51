//! The counts of pods in the statuses of a Deployment and of its ReplicaSets, as they are read.

use ringwatch_apimachinery::{accessor, path};
use serde_json::{Map, Value};

use super::limits::RolloutLimits;

/// The status of a Deployment, as it is stored.
pub(super) type DeploymentStatus = Map<String, Value>;

/// Returns a count of a status.
pub(super) fn count_of(status: &DeploymentStatus, member: &str) -> i64 {
    let count = status.get(member).and_then(Value::as_i64);
    count.unwrap_or_default()
}

/// Returns a count of a ReplicaSet, such as `status.replicas`.
pub(super) fn of_set(set: &Value, at: &str) -> i64 {
    let count = path::get(set, at).and_then(Value::as_i64);
    count.unwrap_or_default()
}

/// Returns true if all pods of a Deployment are new and available (`DeploymentComplete`).
pub(super) fn is_complete(deployment: &Value, status: &DeploymentStatus) -> bool {
    let replicas = RolloutLimits::of(deployment).replicas;
    let counts = ["updatedReplicas", "replicas", "availableReplicas"];
    let generation = accessor::integer(deployment, "generation").unwrap_or_default();
    counts.iter().all(|it| count_of(status, it) == replicas)
        && count_of(status, "observedGeneration") >= generation
}
