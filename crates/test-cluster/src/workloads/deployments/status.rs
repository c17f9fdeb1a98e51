//! The status of a Deployment: how many pods it has, and how its rollout comes on.
//!
//! Source of the semantics: `pkg/controller/deployment/progress.go` and `sync.go` of kube-controller-manager 1.36.

use jiff::Timestamp;
use ringwatch_apimachinery::{accessor, path};
use serde_json::{Value, json};

use super::counts::{DeploymentStatus, count_of, is_complete, of_set};
use super::limits::RolloutLimits;
use super::rollout::Rollout;
use crate::pods;
use crate::workloads::{conditions, set_count};

const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";

const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const AVAILABLE: &str = "NewReplicaSetAvailable";

/// A deadline that stands for none.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Returns the time after which a rollout counts as stuck, in seconds; `None` if it never does.
fn deadline(deployment: &Value) -> Option<i64> {
    let seconds = path::get(deployment, "spec.progressDeadlineSeconds")?.as_i64()?;
    (seconds != NO_DEADLINE).then_some(seconds)
}

/// Tells that a rollout was paused or goes on, so that the time of a pause does not count as if it were stuck.
pub(super) fn pause_or_resume(rollout: &mut Rollout, now: Timestamp) {
    let Rollout {
        deployment, status, ..
    } = rollout;
    let reason = conditions::get(status, PROGRESSING).map(|it| it["reason"].clone());
    let is_told = reason.as_ref().is_some_and(|it| it == PAUSED);
    if deadline(deployment).is_none() || reason.is_some_and(|it| it == TIMED_OUT) {
        return;
    }
    let is_paused = deployment["spec"]["paused"] == true;
    let (reason, message) = match (is_paused, is_told) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    conditions::set(
        status,
        condition(PROGRESSING, "Unknown", (reason, message), now),
    );
}

/// Tells of the new set what has just become of it, with this reason, unless nobody asks for progress.
pub(super) fn tell_of_new(
    rollout: &mut Rollout,
    (reason, message): (&str, &str),
    status: &str,
    now: Timestamp,
) {
    if deadline(&rollout.deployment).is_some() {
        let condition = condition(PROGRESSING, status, (reason, message), now);
        conditions::set(&mut rollout.status, condition);
    }
}

/// Returns true if something is told of the progress.
pub(super) fn tells_of_progress(rollout: &Rollout) -> bool {
    conditions::get(&rollout.status, PROGRESSING).is_some()
}

/// Counts the pods of all sets, and tells if enough are available.
pub(super) fn count(rollout: &mut Rollout, now: Timestamp) {
    let limits = RolloutLimits::of(&rollout.deployment);
    let sum = |at: &str| rollout.sets().map(|set| of_set(set, at)).sum::<i64>();
    let available = sum("status.availableReplicas");
    let updated = rollout.new.as_ref();
    let counts = [
        (
            "observedGeneration",
            accessor::integer(&rollout.deployment, "generation").unwrap_or_default(),
        ),
        ("replicas", sum("status.replicas")),
        (
            "updatedReplicas",
            updated.map_or(0, |set| of_set(set, "status.replicas")),
        ),
        ("readyReplicas", sum("status.readyReplicas")),
        ("availableReplicas", available),
        (
            "unavailableReplicas",
            (sum("spec.replicas") - available).max(0),
        ),
    ];
    let ending = ending(rollout);
    let status = &mut rollout.status;
    for (member, count) in counts {
        set_count(status, member, count);
    }
    match ending {
        Some(ending) => drop(status.insert("terminatingReplicas".to_owned(), ending.into())),
        None => drop(status.remove("terminatingReplicas")),
    }
    let condition = if available >= limits.min_available() {
        let why = (
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        );
        condition("Available", "True", why, now)
    } else {
        let why = (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        );
        condition("Available", "False", why, now)
    };
    conditions::set(status, condition);
}

/// Returns the number of pods that are ending; `None` if a set does not tell.
fn ending(rollout: &Rollout) -> Option<i64> {
    let seen = rollout.sets().filter(|set| {
        of_set(set, "status.observedGeneration") != 0
            || path::get(set, "status.terminatingReplicas").is_some()
    });
    let counts = seen.map(|set| path::get(set, "status.terminatingReplicas")?.as_i64());
    counts.sum()
}

/// Counts the pods and tells how the rollout comes on. Returns the time after which it counts as stuck if nothing
/// changes; `None` if it does not.
pub(super) fn progress(rollout: &mut Rollout, now: Timestamp) -> Option<Timestamp> {
    let before = rollout.status.clone();
    count(rollout, now);
    tell_failure(rollout);
    let Rollout {
        deployment,
        status,
        new,
        ..
    } = rollout;
    let Some(seconds) = deadline(deployment) else {
        conditions::remove(status, PROGRESSING);
        return None;
    };
    let old = conditions::get(&before, PROGRESSING);
    let reason = old.and_then(|it| it["reason"].as_str()).unwrap_or_default();
    let due = old.and_then(|it| it["lastUpdateTime"].as_str()?.parse().ok());
    let due = due.map(|it| accessor::later(it, seconds));
    let whose = match new {
        Some(set) => format!("ReplicaSet {:?}", accessor::text(set, "name")),
        None => format!("Deployment {:?}", accessor::text(deployment, "name")),
    };
    let all_new = count_of(status, "replicas") == count_of(status, "updatedReplicas");
    if is_complete(deployment, status) {
        if !(all_new && reason == AVAILABLE) {
            let message = format!("{whose} has successfully progressed.");
            conditions::set(
                status,
                condition(PROGRESSING, "True", (AVAILABLE, &message), now),
            );
        }
        return None;
    }
    if all_new && reason == AVAILABLE {
        return None;
    }
    if has_progressed(&before, status) {
        let message = format!("{whose} is progressing.");
        let mut next = condition(PROGRESSING, "True", ("ReplicaSetUpdated", &message), now);
        if let Some(old) = old.filter(|it| it["status"] == "True") {
            next["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        // Its time is that of the last progress, even if nothing else of it changes.
        conditions::remove(status, PROGRESSING);
        conditions::set(status, next);
        return Some(accessor::later(now, seconds));
    }
    // A rollout that was complete has not begun anew as long as nothing else is told.
    if reason == AVAILABLE || reason == TIMED_OUT {
        return None;
    }
    if due.is_some_and(|due: Timestamp| due < now) {
        let message = format!("{whose} has timed out progressing.");
        conditions::set(
            status,
            condition(PROGRESSING, "False", (TIMED_OUT, &message), now),
        );
        return None;
    }
    due
}

/// Returns true if there are more new pods, or fewer old ones, or more that can be used (`DeploymentProgressing`).
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status| count_of(status, "replicas") - count_of(status, "updatedReplicas");
    let more = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    old(after) < old(before)
        || more
            .iter()
            .any(|it| count_of(after, it) > count_of(before, it))
}

/// Tells of the failure of a set to create or delete pods, of the new set first.
fn tell_failure(rollout: &mut Rollout) {
    let sets = rollout.new.iter().chain(&rollout.old);
    let failure = sets.filter_map(|set| pods::condition(set, FAILURE)).next();
    let Some(failure) = failure else {
        conditions::remove(&mut rollout.status, FAILURE);
        return;
    };
    let mut failure = failure.clone();
    failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
    conditions::set(&mut rollout.status, failure);
}

fn condition(kind: &str, status: &str, (reason, message): (&str, &str), now: Timestamp) -> Value {
    let now = accessor::format_time(now);
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    })
}

#[cfg(test)]
mod tests;
