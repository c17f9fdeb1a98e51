//! The condition of a pod that is about to be evicted.

use jiff::Timestamp;
use serde_json::Value;

use super::condition;
use crate::policy::disruption_budget::is_guarded;

/// Sets the condition `DisruptionTarget` of a pod that will be evicted. Does nothing to a pod that is pending, has ended or
/// is being deleted.
pub fn mark_evicted(pod: &mut Value, now: Timestamp) {
    if !is_guarded(pod) {
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
