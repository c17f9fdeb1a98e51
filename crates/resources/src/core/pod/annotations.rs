//! Annotations of pods that mean something: those that are immutable, which are that of mirror pods and AppArmor
//! profiles; and the cost of a deletion.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::get;
use serde_json::{Map, Value};

use super::profile_annotations::APP_ARMOR;
use crate::validation::field::{Errors, Field};
use crate::validation::later_rules;

/// Annotation of mirror pods, which stand for static pods of a node.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The path of errors about static pods: an empty one, as Go writes it.
pub(super) const NO_PATH: &str = "[]";

/// Annotation of pods that tells controllers which ones to delete first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Adds the error of a deletion cost that is no integer of 32 bits without a plus and leading zeros; errors name the
/// annotations by `path`. Follows `GetDeletionCostFromPodAnnotations`.
pub(super) fn deletion_cost(pod: &Field<'_, '_>, path: &str, errors: &mut Errors) {
    let annotations = pod.at("metadata.annotations");
    let Some(value) = annotations.value().get(DELETION_COST) else {
        return;
    };
    let text = value.as_str().unwrap_or_default();
    let begins = text.starts_with(|first| matches!(first, '-' | '1'..='9')) || text == "0";
    if !begins || text.parse::<i32>().is_err() {
        let field = format!("{path}[{DELETION_COST}]");
        let error = FieldError::invalid(field, value, "must be a 32bit integer");
        errors.push(error.by_later_rule(later_rules::DELETION_COST));
    }
}

/// Returns true if a pod stands for a static pod of a node.
pub(super) fn is_mirror(pod: &Value) -> bool {
    get(pod, "metadata.annotations").is_some_and(|it| it.get(MIRROR).is_some())
}

/// Returns an error for each immutable annotation that an update adds, changes or removes.
pub(super) fn forbidden_changes(object: &Value, old: &Value) -> Vec<FieldError> {
    let annotations = |pod: &Value| -> Map<String, Value> {
        let found = get(pod, "metadata.annotations").and_then(Value::as_object);
        found.cloned().unwrap_or_default()
    };
    let (new, old) = (annotations(object), annotations(old));
    let changed = old
        .iter()
        .filter(|(name, value)| new.get(*name) != Some(value));
    let changed = changed.map(|(name, _)| (name, "remove or update"));
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let added = added.map(|name| (name, "add"));
    let mut errors = Vec::new();
    for (name, verb) in changed.chain(added) {
        let what = match name.as_str() {
            MIRROR => "mirror pod annotation",
            name if name.starts_with(APP_ARMOR) => "AppArmor annotations",
            _ => continue,
        };
        let field = format!("metadata.annotations[{name}]");
        errors.push(FieldError::forbidden(
            field,
            format!("may not {verb} {what}"),
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cost_of_a_deletion_is_a_number() {
        let errors_of = |cost: &str| {
            let pod = json!({"metadata": {"annotations": {DELETION_COST: cost}}});
            let mut errors = Errors::new();
            deletion_cost(&Field::root(&pod), "metadata.annotations", &mut errors);
            crate::validation::messages(&errors)
        };
        for right in ["0", "5", "-1", "-0", "-05", "2147483647", "-2147483648"] {
            assert!(errors_of(right).is_empty(), "{right}");
        }
        for wrong in [
            "",
            "+5",
            "05",
            "00",
            " 5",
            "5.0",
            "1_0",
            "0x5",
            "abc",
            "٥",
            "-",
            "2147483648",
        ] {
            let error = format!(
                "metadata.annotations[{DELETION_COST}]: Invalid value: {wrong:?}: must be a 32bit integer"
            );
            assert_eq!(errors_of(wrong), [error]);
        }
    }

    #[test]
    fn a_pod_stays_a_mirror_pod_or_none() {
        let pod = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let errors_of = |old: Value, new: Value| -> Vec<String> {
            let errors = forbidden_changes(&pod(new), &pod(old));
            errors
                .iter()
                .map(|it| format!("{}: {}", it.field, it.detail))
                .collect()
        };
        let mirror = json!({MIRROR: "x"});
        let field = format!("metadata.annotations[{MIRROR}]");
        let changed = format!("{field}: may not remove or update mirror pod annotation");
        for other in [json!({}), json!({MIRROR: "y"})] {
            let errors = errors_of(mirror.clone(), other);
            assert_eq!(errors, std::slice::from_ref(&changed));
        }
        let added = format!("{field}: may not add mirror pod annotation");
        assert_eq!(errors_of(json!({}), mirror.clone()), [added]);
        let profile = format!("{APP_ARMOR}c");
        let added = format!("metadata.annotations[{profile}]: may not add AppArmor annotations");
        assert_eq!(errors_of(json!({}), json!({profile: "x"})), [added]);
        assert!(errors_of(json!({"a": "b"}), json!({"c": "d"})).is_empty());
        assert!(errors_of(mirror.clone(), mirror).is_empty());
    }
}
