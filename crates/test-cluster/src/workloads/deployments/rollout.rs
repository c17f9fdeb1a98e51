//! A Deployment with its ReplicaSets in one look, and what its status is going to be.

use std::collections::BTreeSet;

use ringwatch_apimachinery::{accessor, path};
use serde_json::Value;

use super::counts::{self, DeploymentStatus};
use super::limits::RolloutLimits;
use super::revisions::{self, DESIRED, MAX, REVISION};
use super::rolling::SetSize;
use super::scaling::ScaledSet;
use crate::owned::controller_of;
use crate::pods;
use crate::workloads::status_of;

/// A Deployment in one look.
#[derive(Debug)]
pub(super) struct Rollout {
    /// The Deployment as it was read.
    pub(super) deployment: Value,
    /// The status that it is going to have.
    pub(super) status: DeploymentStatus,
    /// The revision that it is going to have; `None` if it keeps its own.
    pub(super) revision: Option<String>,
    /// The set with its template.
    pub(super) new: Option<Value>,
    /// The other sets, the oldest first.
    pub(super) old: Vec<Value>,
}

impl Rollout {
    /// Makes that of a Deployment with these sets.
    pub(super) fn new(deployment: Value, sets: Vec<Value>) -> Self {
        let (new, old) = revisions::split(&deployment, sets);
        Self {
            status: status_of(&deployment),
            deployment,
            revision: None,
            new,
            old,
        }
    }

    /// Returns all sets.
    pub(super) fn sets(&self) -> impl Iterator<Item = &Value> {
        self.old.iter().chain(&self.new)
    }

    /// Returns the sets that are to have pods, the oldest first.
    pub(super) fn active(&mut self) -> Vec<&mut Value> {
        let sets = self.old.iter_mut().chain(&mut self.new);
        let mut active: Vec<&mut Value> = sets.filter(|set| wanted(set) > 0).collect();
        active.sort_by_cached_key(|set| revisions::age_order(set));
        active
    }

    /// Returns the limits of the rollout.
    pub(super) fn limits(&self) -> RolloutLimits {
        RolloutLimits::of(&self.deployment)
    }

    /// Returns true if the Deployment was complete when it was read.
    pub(super) fn was_complete(&self) -> bool {
        counts::is_complete(&self.deployment, &status_of(&self.deployment))
    }

    /// Returns true if a set does not know yet how many pods the Deployment is to have (`isScalingEvent`).
    pub(super) fn is_to_be_scaled(&self) -> bool {
        let replicas = self.limits().replicas;
        let mut active = self.sets().filter(|set| wanted(set) > 0);
        active.any(|set| revisions::noted(set, DESIRED).is_some_and(|it| it != replicas))
    }

    /// Returns true if the new set has all pods of the Deployment, and they are available (`IsSaturated`).
    pub(super) fn is_saturated(&self) -> bool {
        let replicas = self.limits().replicas;
        self.new.as_ref().is_some_and(|set| {
            wanted(set) == replicas
                && revisions::noted(set, DESIRED) == Some(replicas)
                && size(set).available == replicas
        })
    }

    /// Returns true if a pod of another set than the new one may still run, or one that is not counted as a set's.
    pub(super) fn runs_old(&self, pods: &[Value]) -> bool {
        let old: BTreeSet<&str> = self
            .old
            .iter()
            .map(|set| accessor::text(set, "uid"))
            .collect();
        let is_old = |pod: &Value| {
            let uid = controller_of(pod).and_then(|it| it["uid"].as_str());
            uid.is_some_and(|uid| old.contains(uid)) && !pods::has_ended(pod)
        };
        self.old
            .iter()
            .any(|set| counts::of_set(set, "status.replicas") > 0)
            || pods.iter().any(is_old)
    }

    /// Notes the new set, whose revision the Deployment gets.
    pub(super) fn set_new(&mut self, set: Value) {
        let revision = revisions::annotation(&set, REVISION).unwrap_or_default();
        let is_known = revisions::annotation(&self.deployment, REVISION) == Some(revision);
        self.revision = (!is_known).then(|| revision.to_owned());
        self.new = Some(set);
    }

    /// Returns true if something of the Deployment is to be written.
    pub(super) fn is_changed(&self) -> bool {
        self.revision.is_some() || status_of(&self.deployment) != self.status
    }
}

/// Returns the number of pods that a set is to have.
pub(super) fn wanted(set: &Value) -> i64 {
    let wanted = path::get(set, "spec.replicas").and_then(Value::as_i64);
    wanted.unwrap_or(1)
}

/// Returns the size of a set. A set that has just been made smaller tells of more available pods than it keeps, which
/// count as gone: kube-controller-manager counts them, and may so delete too many others at once.
pub(super) fn size(set: &Value) -> SetSize {
    let wanted = wanted(set);
    SetSize {
        wanted,
        available: counts::of_set(set, "status.availableReplicas").min(wanted),
    }
}

/// Returns the size of a set and what it was a part of.
pub(super) fn scaled(set: &Value) -> ScaledSet {
    ScaledSet {
        wanted: wanted(set),
        max_total_before: revisions::noted(set, MAX),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_that_are_to_go_are_not_available() {
        let set = json!({"spec": {"replicas": 6}, "status": {"availableReplicas": 8}});
        let expected = SetSize {
            wanted: 6,
            available: 6,
        };
        assert_eq!(size(&set), expected);
    }
}
