//! Annotations of pods that are immutable: that of mirror pods, and AppArmor profiles.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::get;
use serde_json::{Map, Value};

use super::profile_annotations::APP_ARMOR;

/// Annotation of mirror pods, which stand for static pods of a node.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

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
