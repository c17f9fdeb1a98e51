//! The pods that controllers make of templates, and the questions that several of them ask of pods.

use jiff::Timestamp;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::path;
use serde_json::{Value, json};

/// Returns a pod of a template, for a controller with this reference in this namespace. Its name begins with that of
/// the controller (`GetPodFromTemplate` of `pkg/controller/controller_utils.go`).
pub(crate) fn of_template(template: &Value, owner: &Value, reference: Value) -> Value {
    let mut metadata = json!({
        "namespace": owner["metadata"]["namespace"],
        "generateName": format!("{}-", accessor::text(owner, "name")),
        "ownerReferences": [reference],
    });
    for member in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][member];
        if !value.is_null() {
            metadata[member] = value.clone();
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"],
    })
}

/// Returns true if a pod runs or will: it has not ended, and is not being deleted (`IsPodActive`).
pub(crate) fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// Returns true if a pod has succeeded or failed (`IsPodTerminal`).
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(path::text(pod, "status.phase"), "Succeeded" | "Failed")
}

/// Returns the condition of this type that a pod, or another object, has; `None` without one.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = path::list(object, "status.conditions").iter();
    conditions.find(|it| it["type"] == kind)
}

/// Returns true if a pod takes requests (`IsPodReady`).
pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|it| it["status"] == "True")
}

/// Returns the time from which a pod is available, having been ready for so many seconds; `None` if it is not ready
/// (`IsPodAvailable`). One that needs no seconds is available already.
pub(crate) fn available_from(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|it| it["status"] == "True")?;
    if min_ready_seconds <= 0 {
        return Some(Timestamp::MIN);
    }
    let since = ready["lastTransitionTime"].as_str()?;
    Some(accessor::later(since.parse().ok()?, min_ready_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_pod_is_available_once_it_has_been_ready_for_long_enough() {
        let pod = |status: &str, since: Value| {
            let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
            json!({"status": {"conditions": [{"type": "Other", "status": "True"}, ready]}})
        };
        let since = || json!("2026-01-02T03:04:05Z");
        let from = |pod: &Value, seconds| available_from(pod, seconds).map(|it| it.to_string());
        let ready = pod("True", since());
        assert_eq!(from(&ready, 10), Some("2026-01-02T03:04:15Z".to_owned()));
        assert_eq!(available_from(&ready, 0), Some(Timestamp::MIN));
        assert_eq!(
            available_from(&pod("True", Value::Null), 0),
            Some(Timestamp::MIN)
        );
        assert_eq!(available_from(&pod("True", Value::Null), 10), None);
        assert_eq!(available_from(&pod("False", since()), 0), None);
    }
}
