//! Eviction rules of pods: returns if PodDisruptionBudgets apply to a pod, and sets its condition `DisruptionTarget`.

use jiff::Timestamp;
use ringwatch_apimachinery::path::{get, text};
use serde_json::Value;

use super::condition;

/// Returns true if PodDisruptionBudgets do not apply to the eviction of this pod, since it is pending, has ended or is
/// being deleted. Follows `canIgnorePDB` in pkg/registry/core/pod/storage/eviction.go of Kubernetes 1.36.
#[must_use]
pub fn can_ignore_budgets(pod: &Value) -> bool {
    let idle = matches!(
        text(pod, "status.phase"),
        "Pending" | "Succeeded" | "Failed"
    );
    idle || get(pod, "metadata.deletionTimestamp").is_some()
}

/// Sets the condition `DisruptionTarget` of a pod that will be evicted. Does nothing to a pod that is pending, has
/// ended or is being deleted.
pub fn mark_evicted(pod: &mut Value, now: Timestamp) {
    if can_ignore_budgets(pod) {
        return;
    }
    let why = ("EvictionByEvictionAPI", "Eviction API: evicting");
    condition::note(pod, "DisruptionTarget", now, Some(why));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_running_pod_is_told_why_it_goes() {
        let now: Timestamp = "2026-01-02T03:04:05.6Z".parse().expect("a time");
        let evicted = |mut pod: Value| {
            mark_evicted(&mut pod, now);
            pod
        };
        let running = json!({"metadata": {}, "status": {"phase": "Running"}});
        assert_eq!(
            evicted(running.clone())["status"]["conditions"],
            json!([{"type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting"}])
        );
        let twice = evicted(evicted(running));
        assert_eq!(
            twice["status"]["conditions"].as_array().map(Vec::len),
            Some(1)
        );
        for idle in [
            json!({"metadata": {}, "status": {"phase": "Pending"}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"},
                "status": {"phase": "Running"}}),
        ] {
            assert_eq!(evicted(idle.clone()), idle);
        }
    }
}
