//! Conditions in a pod's status, at most one of each type.

use jiff::Timestamp;
use ringwatch_apimachinery::path::{list, set};
use serde_json::{Value, json};

/// Sets the condition of this type to true since `now`, in place of an older one of the type. `why` is its reason and
/// message, if it has any.
pub(super) fn note(pod: &mut Value, kind: &str, now: Timestamp, why: Option<(&str, &str)>) {
    put(pod, (kind, "True"), now, why);
}

/// Notes that a pod with scheduling gates waits for them. Follows `applySchedulingGatedCondition`.
pub(super) fn note_gates(pod: &mut Value, now: Timestamp) {
    if list(pod, "spec.schedulingGates").is_empty() {
        return;
    }
    let why = (
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    );
    put(pod, ("PodScheduled", "False"), now, Some(why));
}

fn put(pod: &mut Value, (kind, status): (&str, &str), now: Timestamp, why: Option<(&str, &str)>) {
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    if let Some((reason, message)) = why {
        set(&mut condition, "reason", reason.into());
        set(&mut condition, "message", message.into());
    }
    let mut conditions = list(pod, "status.conditions").to_vec();
    conditions.retain(|condition| condition.get("type").and_then(Value::as_str) != Some(kind));
    conditions.push(condition);
    set(pod, "status.conditions", Value::Array(conditions));
}
