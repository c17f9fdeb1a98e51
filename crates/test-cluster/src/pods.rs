//! What several controllers ask of pods, and the pods that they make.

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
