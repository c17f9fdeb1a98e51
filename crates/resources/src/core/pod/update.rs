//! Validation of pod updates, which may change very few fields.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, get_mut, keep, list, remove, text};
use serde_json::Value;

use super::validation;
use crate::validation::{Field, found};

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of the pod itself and returns the errors of changes that are not allowed.
pub(super) fn forbidden_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for containers in ["containers", "initContainers"] {
        let path = format!("spec.{containers}");
        if list(object, &path).len() != list(old, &path).len() {
            let why = "pod updates may not add or remove containers";
            return vec![FieldError::forbidden(path, why)];
        }
    }
    errors.extend(deadline_change(object, old));
    errors.extend(toleration_changes(object, old));
    errors.extend(added_gates(object, old));
    if !errors.is_empty() {
        return errors;
    }
    let mut rest = object.clone();
    for containers in ["spec.containers", "spec.initContainers"] {
        keep_images(&mut rest, old, containers);
    }
    keep(&mut rest, old, "spec.activeDeadlineSeconds");
    keep(&mut rest, old, "spec.tolerations");
    keep(&mut rest, old, "spec.schedulingGates");
    errors.extend(selector_change(object, old, &mut rest));
    let [before, after] = [old, &rest].map(|pod| get(pod, "spec").unwrap_or(&Value::Null));
    if after != before {
        let spec = Field::root(object);
        let spec = spec.at("spec");
        let difference = spec.difference(before, after);
        errors.push(spec.forbidden(format!("{FORBIDDEN}\n{difference}")));
    }
    errors
}

/// Validates a write of ephemeral containers, which may add some but not change or remove any.
pub(super) fn forbidden_ephemeral_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.ephemeralContainers";
    let mut named = HashMap::new();
    for container in list(object, PATH) {
        named.entry(text(container, "name")).or_insert(container);
    }
    let mut errors = found(validation::pod, object);
    let pod = Field::root(object);
    let containers = pod.at(PATH);
    for before in list(old, PATH) {
        let name = text(before, "name");
        let why = match named.get(name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(after) if *after != before => {
                let difference = containers.items("").next();
                let difference = difference.map(|it| it.difference(before, after));
                let difference = difference.unwrap_or_default();
                format!("existing ephemeral containers {name:?} may not be changed\n{difference}")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(PATH, why));
    }
    errors
}

fn deadline_change(object: &Value, old: &Value) -> Option<FieldError> {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let before = get(old, PATH).and_then(Value::as_i64)?;
    match get(object, PATH) {
        None => {
            let why = "must not update from a positive integer to nil value";
            Some(FieldError::invalid(PATH, &Value::Null, why))
        }
        Some(after) if after.as_i64().is_none_or(|after| after > before) => {
            let why = "must be less than or equal to previous value";
            Some(FieldError::invalid(PATH, after, why))
        }
        Some(_) => None,
    }
}

/// Returns an error unless every toleration stays, though perhaps with another `tolerationSeconds`.
fn toleration_changes(object: &Value, old: &Value) -> Option<FieldError> {
    const PATH: &str = "spec.tolerations";
    let timeless = |pod: &Value| -> Vec<Value> {
        let mut tolerations = list(pod, PATH).to_vec();
        for toleration in &mut tolerations {
            drop(remove(toleration, "tolerationSeconds"));
        }
        tolerations
    };
    let now: HashSet<Value> = timeless(object).into_iter().collect();
    let kept = timeless(old).iter().all(|before| now.contains(before));
    (!kept).then(|| {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        FieldError::forbidden(PATH, why)
    })
}

fn keep_images(object: &mut Value, old: &Value, containers: &str) {
    let before = list(old, containers).to_vec();
    let after = get_mut(object, containers).and_then(Value::as_array_mut);
    for (after, before) in after.into_iter().flatten().zip(&before) {
        keep(after, before, "image");
    }
}

/// Returns an error for each scheduling gate that is new; gates may only be removed.
fn added_gates(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.schedulingGates";
    let before: HashSet<&Value> = list(old, PATH).iter().collect();
    let gates = list(object, PATH).iter().enumerate();
    let added = gates.filter(|(_, gate)| !before.contains(gate));
    added
        .map(|(index, gate)| {
            let name = text(gate, "name");
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            FieldError::forbidden(format!("{PATH}[{index}].name"), why)
        })
        .collect()
}

/// Validates a change of the node selector, to which labels may be added as long as the pod has scheduling gates. The
/// change is undone in `rest` then.
fn selector_change(object: &Value, old: &Value, rest: &mut Value) -> Option<FieldError> {
    const PATH: &str = "spec.nodeSelector";
    if list(old, "spec.schedulingGates").is_empty() {
        return None;
    }
    keep(rest, old, PATH);
    let now = get(object, PATH).unwrap_or(&Value::Null);
    let before = get(old, PATH).and_then(Value::as_object);
    let mut before = before.into_iter().flatten();
    let kept = before.all(|(label, value)| now.get(label) == Some(value));
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    (!kept).then(|| FieldError::invalid(PATH, now, why))
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::path::set;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"spec": {
            "containers": [{"name": "c", "image": "i"}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
            "activeDeadlineSeconds": 10,
            "schedulingGates": [{"name": "g"}],
        }})
    }

    fn change(path: &str, value: Value) -> Vec<String> {
        let mut object = pod();
        set(&mut object, path, value);
        forbidden_changes(&object, &pod())
            .into_iter()
            .map(|error| error.field)
            .collect()
    }

    #[test]
    fn only_a_few_fields_may_change() {
        let none: [&str; 0] = [];
        assert_eq!(change("metadata.labels", json!({"a": "b"})), none);
        assert_eq!(
            change("spec.containers", json!([{"name": "c", "image": "new"}])),
            none
        );
        assert_eq!(change("spec.activeDeadlineSeconds", json!(5)), none);
        assert_eq!(change("spec.schedulingGates", json!([])), none);
        let more = json!([{"key": "k", "operator": "Exists"}, {"key": "l"}]);
        assert_eq!(change("spec.tolerations", more), none);

        assert_eq!(change("spec.nodeName", json!("n9")), ["spec"]);
        assert_eq!(
            change("spec.schedulingGates", json!([{"name": "h"}])),
            ["spec.schedulingGates[0].name"]
        );
        assert_eq!(change("spec.containers", json!([])), ["spec.containers"]);
        assert_eq!(
            change("spec.activeDeadlineSeconds", json!(11)),
            ["spec.activeDeadlineSeconds"]
        );
        assert_eq!(change("spec.tolerations", json!([])), ["spec.tolerations"]);
    }

    #[test]
    fn ephemeral_containers_stay_as_they_are() {
        let container = json!({"name": "d", "image": "i", "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always"});
        let old = json!({"spec": {"containers": [{"name": "c", "image": "i"}],
            "ephemeralContainers": [container]}});
        assert_eq!(forbidden_ephemeral_changes(&old, &old), []);
        let mut gone = old.clone();
        drop(remove(&mut gone, "spec.ephemeralContainers"));
        let gone = forbidden_ephemeral_changes(&gone, &old);
        assert_eq!(gone.len(), 1);
        let mut changed = old.clone();
        set(
            &mut changed,
            "spec.ephemeralContainers",
            json!([{"name": "d", "image": "other"}]),
        );
        assert!(!forbidden_ephemeral_changes(&changed, &old).is_empty());
    }
}
