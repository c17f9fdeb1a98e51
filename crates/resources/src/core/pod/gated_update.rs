//! Changes of where a pod may run, which are allowed as long as it has scheduling gates: what is asked of a node may
//! become more.
//!
//! Follows `ValidatePodUpdate` in pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, keep, list, remove, set};
use serde_json::Value;

use crate::validation::Field;

const SELECTOR: &str = "spec.nodeSelector";
const AFFINITY: &str = "spec.affinity";
const OF_NODES: &str = "spec.affinity.nodeAffinity";
const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";

/// Validates the changes of a pod that has gates, and undoes them in `rest`.
pub(super) fn forbidden_changes(object: &Value, old: &Value, rest: &mut Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if list(old, "spec.schedulingGates").is_empty() {
        return errors;
    }
    errors.extend(selector_change(object, old));
    keep(rest, old, SELECTOR);
    if get(object, OF_NODES) != get(old, OF_NODES) {
        errors.extend(affinity_changes(object, old));
        undo_affinity(rest, old);
    }
    errors
}

/// Returns an error unless all labels of the node selector stay. Follows `validateNodeSelectorMutation`.
fn selector_change(object: &Value, old: &Value) -> Option<FieldError> {
    let now = get(object, SELECTOR).unwrap_or(&Value::Null);
    let before = get(old, SELECTOR).and_then(Value::as_object);
    let mut before = before.into_iter().flatten();
    let kept = before.all(|(label, value)| now.get(label) == Some(value));
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    (!kept).then(|| FieldError::invalid(SELECTOR, now, why))
}

/// Returns the errors of terms of the required node affinity that are gone or new, or that ask for something else.
/// Follows `validateNodeAffinityMutation`.
fn affinity_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    let path = format!("{REQUIRED}.nodeSelectorTerms");
    let (after, before) = (list(object, &path), list(old, &path));
    let pod = Field::root(object);
    let terms = pod.at(&path);
    if !before.is_empty() && before.len() != after.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return vec![if terms.is_set() {
            terms.invalid(why)
        } else {
            terms.invalid_value(Value::Null, why)
        }];
    }
    let pairs = terms.items("").zip(before);
    let other = pairs.filter(|(after, before)| !has_only_additions(after.value(), before));
    let why = "only additions are allowed (no mutations or deletions)";
    other.map(|(after, _)| after.invalid(why)).collect()
}

/// Returns true if a term begins as it did. One that asked for nothing matches nothing, and stays so.
fn has_only_additions(after: &Value, before: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    if lists.iter().all(|it| list(before, it).is_empty()) {
        return lists.iter().all(|it| list(after, it).is_empty());
    }
    lists
        .iter()
        .all(|it| list(after, it).starts_with(list(before, it)))
}

/// Gives `rest` the node affinity of the old pod, and no affinity if it had none at all.
fn undo_affinity(rest: &mut Value, old: &Value) {
    let pods = ["podAffinity", "podAntiAffinity"];
    match (get(rest, AFFINITY), get(old, AFFINITY)) {
        (None, _) => {
            if let Some(nodes) = get(old, OF_NODES) {
                set(rest, OF_NODES, nodes.clone());
            }
        }
        (Some(now), None) if pods.iter().all(|it| get(now, it).is_none()) => {
            drop(remove(rest, AFFINITY));
        }
        (Some(_), _) => keep(rest, old, OF_NODES),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn pod(affinity: &Value) -> Value {
        let mut pod = json!({"spec": {"schedulingGates": [{"name": "g"}], "affinity": affinity}});
        if affinity.is_null() {
            drop(remove(&mut pod, AFFINITY));
        }
        pod
    }

    /// Returns the affinity of a pod to nodes that match terms, each of expressions with these keys.
    fn terms(terms: &[&[&str]]) -> Value {
        let term = |keys: &&[&str]| {
            let expressions: Vec<_> = keys
                .iter()
                .map(|it| json!({"key": it, "operator": "Exists"}))
                .collect();
            json!({"matchExpressions": expressions})
        };
        let terms: Vec<_> = terms.iter().map(term).collect();
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    }

    fn change(before: &Value, after: &Value) -> (Vec<String>, bool) {
        let (old, object) = (pod(before), pod(after));
        let mut rest = object.clone();
        let errors = forbidden_changes(&object, &old, &mut rest);
        (messages(&errors), rest == old)
    }

    #[test]
    fn a_gated_pod_asks_more_of_its_node() {
        let more = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}});
        for (before, after) in [
            (Value::Null, terms(&[&["a"]])),
            (Value::Null, more.clone()),
            (more.clone(), Value::Null),
            (more, terms(&[&["a"], &["b"]])),
            (terms(&[&["a"], &["b"]]), terms(&[&["a", "c"], &["b"]])),
        ] {
            assert_eq!(
                change(&before, &after),
                (Vec::new(), true),
                "{before} {after}"
            );
        }
    }

    #[test]
    fn a_gated_pod_does_not_ask_for_something_else() {
        const NUMBER: &str =
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        const TERM: &str = "only additions are allowed (no mutations or deletions)";
        let one = terms(&[&["a"]]);
        for (before, after, at, why) in [
            (one.clone(), Value::Null, "", NUMBER),
            (one.clone(), terms(&[&["a"], &["b"]]), "", NUMBER),
            (one.clone(), terms(&[&["b"]]), "[0]", TERM),
            (one, terms(&[&["b", "a"]]), "[0]", TERM),
            (terms(&[&[]]), terms(&[&["a"]]), "[0]", TERM),
        ] {
            let (wrong, is_undone) = change(&before, &after);
            let [wrong] = &wrong[..] else {
                panic!("{before} {after}: {wrong:?}");
            };
            let place = format!("{REQUIRED}.nodeSelectorTerms{at}: Invalid value: ");
            assert!(wrong.starts_with(&place) && wrong.ends_with(why), "{wrong}");
            assert!(is_undone);
        }
    }

    #[test]
    fn the_affinity_to_pods_stays() {
        let with_pods =
            json!({"podAffinity": {}, "nodeAffinity": terms(&[&["a"]])["nodeAffinity"]});
        assert_eq!(change(&Value::Null, &with_pods), (Vec::new(), false));
        assert_eq!(
            change(&json!({"podAffinity": {}}), &with_pods),
            (Vec::new(), true)
        );
    }
}
