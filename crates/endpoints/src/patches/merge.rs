//! JSON merge patches (RFC 7386), as kube-apiserver's library carries them out.
//!
//! Follows `MergePatch` of gopkg.in/evanphx/json-patch.v4. What takes the place of anything but a map is taken without
//! its nulls, as the RFC says, and without those of the maps in its lists, as the RFC does not say.

#[cfg(test)]
mod model_tests;

use serde_json::{Map, Value};

/// Merges the members of a patch into a map.
pub(super) fn merge(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (object.get_mut(name), value) {
            (_, Value::Null) => drop(object.remove(name)),
            (Some(Value::Object(own)), Value::Object(patch)) => merge(own, patch),
            (Some(Value::Object(_)), value) => drop(object.insert(name.clone(), value.clone())),
            (_, value) => drop(object.insert(name.clone(), without_nulls(value))),
        }
    }
}

/// Returns a value without the nulls of its maps; those of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let members = members.map(|(name, value)| (name.clone(), without_nulls(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(object: &Value, patch: &Value) -> Value {
        let mut merged = object.as_object().cloned().expect("a map");
        merge(&mut merged, patch.as_object().expect("a map"));
        Value::Object(merged)
    }

    #[test]
    fn nulls_remove_members_and_are_not_kept_in_new_ones() {
        let object = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [{"f": 1}]});
        let patch = json!({"a": null, "b": {"c": null}, "e": [{"f": null, "g": [null]}],
            "h": {"i": null, "j": [{"k": null}]}});
        let expected = json!({"b": {"d": 2}, "e": [{"g": [null]}], "h": {"j": [{}]}});
        assert_eq!(merged(&object, &patch), expected);
        // In place of a map a list is taken as it is.
        let patch = json!({"b": [{"c": null}]});
        assert_eq!(merged(&object, &patch)["b"], patch["b"]);
    }
}
