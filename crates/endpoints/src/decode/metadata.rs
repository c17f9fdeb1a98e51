//! Checks that an object's metadata has the types that every later step relies on.

use ringwatch_apimachinery::go_json;
use serde_json::{Map, Value};

/// The members that are text.
const TEXTS: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
];

/// The members that are maps of texts.
const MAPS: &[&str] = &["labels", "annotations"];

/// The members that are lists.
const LISTS: &[&str] = &["finalizers", "ownerReferences", "managedFields"];

/// Checks `metadata`, and adds an empty one if it is missing.
///
/// # Errors
/// The error of Go's decoder about a value of the wrong type.
pub(super) fn check(object: &mut Map<String, Value>) -> Result<(), String> {
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let metadata = object
        .entry("metadata")
        .and_modify(|value| {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
        })
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(members) = metadata.as_object_mut() else {
        return Err(wrong(metadata, &kind, "", "v1.ObjectMeta"));
    };
    members.retain(|_, value| !value.is_null());
    for (name, value) in members.iter() {
        let name = name.as_str();
        if TEXTS.contains(&name) && !value.is_string() {
            return Err(wrong(value, &kind, name, "string"));
        }
        if LISTS.contains(&name) && !value.is_array() {
            return Err(wrong(value, &kind, name, "[]string"));
        }
        if MAPS.contains(&name) {
            let Some(entries) = value.as_object() else {
                return Err(wrong(value, &kind, name, "map[string]string"));
            };
            let mut values = entries.values();
            // A null is an empty text.
            if let Some(entry) = values.find(|entry| !entry.is_string() && !entry.is_null()) {
                return Err(wrong(entry, &kind, name, "string"));
            }
        }
        if name == "finalizers"
            && let Some(entry) = value
                .as_array()
                .into_iter()
                .flatten()
                .find(|it| !it.is_string())
        {
            return Err(wrong(entry, &kind, name, "string"));
        }
    }
    Ok(())
}

fn wrong(value: &Value, kind: &str, name: &str, expected: &str) -> String {
    let field = if name.is_empty() {
        "metadata".to_owned()
    } else {
        format!("metadata.{name}")
    };
    go_json::wrong(value, kind, &field, expected)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_checked_and_nulls_dropped() {
        let mut fine = json!({"kind": "Pod", "metadata": {"name": "a", "labels": null, "annotations": {"a": null}}});
        check(fine.as_object_mut().expect("an object")).expect("fine");
        assert_eq!(
            fine["metadata"],
            json!({"name": "a", "annotations": {"a": null}})
        );
        for (metadata, expected) in [
            (
                json!(1),
                "number into Go struct field Pod.metadata of type v1.ObjectMeta",
            ),
            (
                json!({"name": 1}),
                "number into Go struct field Pod.metadata.name of type string",
            ),
            (
                json!({"labels": {"a": 1}}),
                "number into Go struct field Pod.metadata.labels of type string",
            ),
            (
                json!({"finalizers": [{}]}),
                "object into Go struct field Pod.metadata.finalizers of type string",
            ),
        ] {
            let mut object = json!({"kind": "Pod", "metadata": metadata});
            let error = check(object.as_object_mut().expect("an object")).expect_err("wrong");
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
