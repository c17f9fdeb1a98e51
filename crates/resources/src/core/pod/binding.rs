//! Binding of a pod to a node, which a scheduler posts.

use jiff::Timestamp;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, keep, list, remove, set, text};
use ringwatch_registry::{RequestContext, Strategy};
use serde_json::Value;

use super::condition;

/// Name of the resource in messages.
const RESOURCE: &str = "pods/binding";

/// Binds a pod to the node that is the target of a `Binding`. The pod gets the labels and annotations of the binding,
/// and loses `status.nominatedNodeName`; its generation stays.
///
/// # Errors
/// [`Error::Conflict`] if the pod is bound, is being deleted or has scheduling gates.
pub fn bind(pod: &mut Value, binding: &Value, now: Timestamp) -> Result<(), Error> {
    let name = text(pod, "metadata.name").to_owned();
    let node = text(binding, "target.name");
    let conflict = |message: String| Error::Conflict {
        resource: RESOURCE.to_owned(),
        name: name.clone(),
        message,
    };
    if get(pod, "metadata.deletionTimestamp").is_some() {
        return Err(conflict(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        )));
    }
    let bound = text(pod, "spec.nodeName");
    if !bound.is_empty() {
        return Err(conflict(format!(
            "pod {name} is already assigned to node {bound:?}"
        )));
    }
    if !list(pod, "spec.schedulingGates").is_empty() {
        return Err(conflict(format!(
            "pod {name} has non-empty .spec.schedulingGates"
        )));
    }
    set(pod, "spec.nodeName", node.into());
    drop(remove(pod, "status.nominatedNodeName"));
    for member in ["annotations", "labels"] {
        merge_metadata(pod, binding, member);
    }
    condition::note(pod, "PodScheduled", now, None);
    Ok(())
}

/// The strategy of the subresources `binding` and `eviction`, which stores the pod as the handler leaves it.
#[derive(Debug)]
pub(crate) struct PodBinding;

impl Strategy for PodBinding {
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "metadata.generation");
    }
}

fn merge_metadata(pod: &mut Value, binding: &Value, member: &str) {
    let path = format!("metadata.{member}");
    let Some(Value::Object(more)) = get(binding, &path) else {
        return;
    };
    let mut all = get(pod, &path)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    all.extend(more.clone());
    if !all.is_empty() {
        set(pod, &path, Value::Object(all));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_bound_once() {
        let now: Timestamp = "2026-01-02T03:04:05.6Z".parse().expect("a time");
        let binding = json!({"metadata": {"name": "p1", "annotations": {"a": "1"}},
            "target": {"kind": "Node", "name": "n1"}});
        let mut pod = json!({"metadata": {"name": "p1", "generation": 1}, "spec": {},
            "status": {"conditions": [{"type": "Ready"}], "nominatedNodeName": "n2"}});
        bind(&mut pod, &binding, now).expect("bound");
        assert_eq!(pod["spec"]["nodeName"], "n1");
        assert!(pod["status"].get("nominatedNodeName").is_none());
        assert_eq!(pod["metadata"]["annotations"], json!({"a": "1"}));
        assert_eq!(
            pod["status"]["conditions"][1],
            json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": "2026-01-02T03:04:05Z"})
        );
        let again = bind(&mut pod, &binding, now).expect_err("bound already");
        assert_eq!(
            again.to_string(),
            "Operation cannot be fulfilled on pods/binding \"p1\": pod p1 is already assigned to node \"n1\""
        );
    }
}
