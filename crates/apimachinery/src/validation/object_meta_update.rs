//! Validation of changes to metadata by an update.

use std::collections::HashSet;

use serde_json::Value;

use crate::FieldError;
use crate::accessor::{ZERO_TIME, finalizers, integer, is_terminating};

/// Members of the metadata that are immutable.
const IMMUTABLE: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Validates the change of an object's metadata and returns the errors of its fields. The new metadata itself is
/// checked by [`super::validate_object_meta`].
#[must_use]
pub fn validate_object_meta_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_terminating(old) {
        let known: HashSet<&str> = finalizers(old).into_iter().collect();
        let mut added = finalizers(object);
        added.retain(|finalizer| !known.contains(finalizer));
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|it| format!("{it:?}")).collect();
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    let generation = integer(object, "generation").unwrap_or(0);
    if generation < integer(old, "generation").unwrap_or(0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            &Value::from(generation),
            "must not be decremented",
        ));
    }
    let (metadata, old) = (&object["metadata"], &old["metadata"]);
    for member in IMMUTABLE {
        let value = &metadata[member];
        if *value != old[member] {
            let empty = Value::from("");
            let text_is_missing =
                value.is_null() && matches!(*member, "name" | "namespace" | "uid");
            let shown = match value.as_str() {
                _ if text_is_missing => &empty,
                Some(ZERO_TIME) if *member == "deletionTimestamp" => &Value::Null,
                _ => value,
            };
            errors.push(FieldError::invalid(
                format!("metadata.{member}"),
                shown,
                "field is immutable",
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(new: Value, old: Value) -> Vec<String> {
        validate_object_meta_update(&json!({"metadata": new}), &json!({"metadata": old}))
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect()
    }

    #[test]
    fn identity_and_times_do_not_change() {
        let old = json!({"name": "a", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(wrong(old.clone(), old.clone()), Vec::<String>::new());
        let new = json!({
            "name": "b", "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "deletionGracePeriodSeconds": 3,
        });
        assert_eq!(
            wrong(new, old),
            [
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"\": field is immutable",
                "metadata.deletionTimestamp: Invalid value: \"2026-01-02T00:00:00Z\": field is immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ]
        );
    }

    #[test]
    fn a_zero_time_of_deletion_is_one() {
        let new = json!({"deletionTimestamp": ZERO_TIME});
        assert_eq!(
            wrong(new, json!({})),
            ["metadata.deletionTimestamp: Invalid value: null: field is immutable"]
        );
    }

    #[test]
    fn a_terminating_object_gets_no_finalizers() {
        let old = json!({"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["x/a"]});
        let new =
            json!({"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["x/c", "x/b"]});
        assert_eq!(
            wrong(new.clone(), old),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/b\", \"x/c\"}"
            ]
        );
        let fewer = json!({"deletionTimestamp": "2026-01-02T00:00:00Z"});
        assert_eq!(wrong(fewer, new), Vec::<String>::new());
    }

    #[test]
    fn the_generation_does_not_fall() {
        assert_eq!(
            wrong(json!({"generation": 1}), json!({"generation": 2})),
            ["metadata.generation: Invalid value: 1: must not be decremented"]
        );
    }
}
