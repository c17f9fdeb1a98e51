//! Validation of pod updates, which may change very few fields.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::path::{get, get_mut, keep, list, remove, text};
use serde_json::Value;

use super::validation::{self, scheduling};
use super::{annotations, gated_update};
use crate::validation::{Errors, Field, found_in_update};

const FORBIDDEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Validates an update of the pod itself and returns the errors of changes that are not allowed. Follows
/// `ValidatePodUpdate`.
pub(super) fn forbidden_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = annotations_and_changes(object, old);
    for containers in ["containers", "initContainers"] {
        if is_other_number(object, old, containers, &mut errors) {
            return errors;
        }
    }
    if is_later_deadline(object, old, &mut errors) {
        return errors;
    }
    errors.extend(toleration_changes(object, old));
    errors.extend(added_gates(object, old));
    let mut rest = object.clone();
    for containers in ["spec.containers", "spec.initContainers"] {
        keep_images(&mut rest, old, containers);
    }
    keep(&mut rest, old, "spec.activeDeadlineSeconds");
    keep(&mut rest, old, "spec.tolerations");
    keep(&mut rest, old, "spec.schedulingGates");
    keep_negative_period(&mut rest, old);
    errors.extend(gated_update::forbidden_changes(object, old, &mut rest));
    let [before, after] = [old, &rest].map(|pod| get(pod, "spec").unwrap_or(&Value::Null));
    if after != before {
        let spec = Field::root(object);
        let spec = spec.at("spec");
        let difference = spec.difference(before, after);
        errors.push(spec.forbidden(format!("{FORBIDDEN}\n{difference}")));
    }
    errors
}

/// Returns the errors of changed annotations, and once more those of the annotations themselves. Follows
/// `ValidatePodSpecificAnnotationUpdates`.
pub(super) fn annotations_and_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = annotations::forbidden_changes(object, old);
    errors.extend(found_in_update(validation::annotations_of_pod, object, old));
    errors
}

/// Bytes that the difference of a container uses up at least of those that errors may have.
const DIFFERENCE_BYTES_MIN: usize = ERROR_BYTES_MAX / 16;

/// Validates a write of ephemeral containers, which may add some but not change or remove any. Follows
/// `ValidatePodEphemeralContainersUpdate`.
pub(super) fn forbidden_ephemeral_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.ephemeralContainers";
    if annotations::is_mirror(old) {
        let why = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden(annotations::NO_PATH, why)];
    }
    let mut errors = found_in_update(validation::pod, object, old);
    errors.extend(annotations_and_changes(object, old));
    let pod = Field::root(object);
    let containers = pod.at(PATH);
    // The last of a name counts.
    let named = list(object, PATH).iter().map(|it| (text(it, "name"), it));
    let named: HashMap<_, _> = named.collect();
    let mut room = ERROR_BYTES_MAX;
    for before in list(old, PATH) {
        let name = text(before, "name");
        let why = match named.get(name) {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(after) if *after != before => {
                let shown = containers.items("").next().filter(|_| room > 0);
                let difference = shown.map(|it| it.difference(before, after));
                let difference = difference.unwrap_or_default();
                // Each takes some time, so that not all are shown of many.
                room = room.saturating_sub(DIFFERENCE_BYTES_MIN.max(difference.len()));
                format!("existing ephemeral containers {name:?} may not be changed\n{difference}")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(PATH, why));
    }
    errors
}

/// Checks that there are as many containers as before, and that they have images. Returns true if there are not as
/// many; nothing more is looked at then. Follows `ValidateContainerUpdates`.
fn is_other_number(object: &Value, old: &Value, containers: &str, errors: &mut Errors) -> bool {
    let path = format!("spec.{containers}");
    if list(object, &path).len() != list(old, &path).len() {
        let why = "pod updates may not add or remove containers";
        errors.push(FieldError::forbidden(path, why));
        return true;
    }
    for container in Field::root(object).items(&path) {
        container.at("image").must_be_set(errors);
        validation::no_spaces_around_image(&container, errors);
    }
    false
}

/// Checks that the deadline is not later than before. Returns true if it is; nothing more is looked at then.
fn is_later_deadline(object: &Value, old: &Value, errors: &mut Errors) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let (object, old) = (Field::root(object), Field::root(old));
    let (after, before) = (object.at(PATH), old.at(PATH));
    let first = errors.len();
    after.must_be_between(0, i64::from(i32::MAX), errors);
    if errors.len() > first {
        return true;
    }
    match (after.number(), before.number()) {
        (Some(after_seconds), Some(before)) if before < after_seconds => {
            errors.push(after.invalid("must be less than or equal to previous value"));
            true
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(after.invalid_value(Value::Null, why));
            false
        }
        _ => false,
    }
}

/// Keeps a negative grace period if it becomes 1, which is what it means.
fn keep_negative_period(rest: &mut Value, old: &Value) {
    const PATH: &str = "spec.terminationGracePeriodSeconds";
    let seconds = |pod: &Value| get(pod, PATH).and_then(Value::as_i64);
    if seconds(old).is_some_and(|it| it < 0) && seconds(rest) == Some(1) {
        keep(rest, old, PATH);
    }
}

/// Returns an error unless every toleration stays, though perhaps with another `tolerationSeconds`; if they stay, once
/// more the errors of the tolerations themselves. Follows `validateOnlyAddedTolerations`.
fn toleration_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.tolerations";
    let timeless = |pod: &Value| -> Vec<Value> {
        let mut tolerations = list(pod, PATH).to_vec();
        for toleration in &mut tolerations {
            drop(remove(toleration, "tolerationSeconds"));
        }
        tolerations
    };
    let now: HashSet<Value> = timeless(object).into_iter().collect();
    if !timeless(old).iter().all(|before| now.contains(before)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden(PATH, why)];
    }
    let mut errors = Errors::new();
    scheduling::tolerations(&Field::root(object).at(PATH), &mut errors);
    errors
}

fn keep_images(object: &mut Value, old: &Value, containers: &str) {
    let before = list(old, containers).to_vec();
    let after = get_mut(object, containers).and_then(Value::as_array_mut);
    for (after, before) in after.into_iter().flatten().zip(&before) {
        keep(after, before, "image");
    }
}

/// Returns an error for each scheduling gate that is new; gates may only be removed. Follows
/// `validateOnlyDeletedSchedulingGates`.
fn added_gates(object: &Value, old: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.schedulingGates";
    let names = |pod| list(pod, PATH).iter().map(|it| text(it, "name"));
    let before: HashSet<&str> = names(old).collect();
    // The last of a name counts.
    let last: HashMap<&str, usize> = names(object).enumerate().map(|(at, it)| (it, at)).collect();
    let added = names(object).enumerate();
    let added = added.filter(|(at, it)| !before.contains(it) && last.get(it) == Some(at));
    added
        .map(|(at, name)| {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            FieldError::forbidden(format!("{PATH}[{at}].name"), why)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::path::set;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"spec": {
            "containers": [{"name": "c", "image": "i"}],
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
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
        let more = json!([{"key": "k", "operator": "Exists", "effect": "NoExecute"}, {"key": "l"}]);
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
    fn what_is_wrong_with_a_change_is_told_at_once() {
        let mut object = pod();
        set(&mut object, "spec.nodeName", json!("n9"));
        let containers = json!([{"name": "c", "image": " i"}]);
        set(&mut object, "spec.containers", containers);
        set(&mut object, "spec.tolerations", json!([]));
        let gates = json!([{"name": "h"}, {"name": "g"}, {"name": "h"}]);
        set(&mut object, "spec.schedulingGates", gates);
        drop(remove(&mut object, "spec.activeDeadlineSeconds"));
        let wrong = crate::validation::messages(&forbidden_changes(&object, &pod()));
        assert_eq!(
            wrong,
            [
                "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
                "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
                "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
                "spec.schedulingGates[2].name: Forbidden: only deletion is allowed, but found new scheduling gate 'h'",
                &format!("spec: Forbidden: {FORBIDDEN}\n"),
            ]
        );
    }

    #[test]
    fn a_negative_period_becomes_the_least() {
        let with = |seconds: i64| json!({"spec": {"terminationGracePeriodSeconds": seconds}});
        assert_eq!(forbidden_changes(&with(1), &with(-1)), []);
        assert_eq!(forbidden_changes(&with(2), &with(-1)).len(), 1);
        assert_eq!(forbidden_changes(&with(1), &with(0)).len(), 1);
    }

    #[test]
    fn static_pods_get_no_ephemeral_containers() {
        let old = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        let wrong = crate::validation::messages(&forbidden_ephemeral_changes(&old, &old));
        let why = "[]: Forbidden: static pods do not support ephemeral containers";
        assert_eq!(wrong, [why]);
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
