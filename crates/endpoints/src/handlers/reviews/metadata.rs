//! Checks the metadata of an access review, of which there must be none.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

/// The members of metadata that a review may come with, in the order of Go's fields.
const METADATA_MEMBERS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// The members of an entry of the managed fields.
const ENTRY_MEMBERS: [&str; 7] = [
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// The members of a reference to an owner.
const OWNER_MEMBERS: [&str; 6] = [
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];

/// Returns the error in the metadata of a review, which has none but managed fields and, of a local one, a namespace.
pub(super) fn metadata_error(review: &Value, is_local: bool) -> Option<FieldError> {
    let metadata = review.get("metadata")?.as_object()?;
    let may_be = |name: &str| name == "managedFields" || is_local && name == "namespace";
    let is_zero = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    };
    let found = metadata
        .iter()
        .any(|(name, value)| !may_be(name) && !is_zero(value));
    let why = if is_local {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    found.then(|| {
        let items = |items: &Value, names: &[&str]| {
            let items = items.as_array().into_iter().flatten();
            let items = items.map(|it| in_order(it, names, &|_, value| value.to_string()));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        };
        let metadata = &review["metadata"];
        let shown = in_order(metadata, &METADATA_MEMBERS, &|name, value| match name {
            "ownerReferences" => items(value, &OWNER_MEMBERS),
            "managedFields" => items(value, &ENTRY_MEMBERS),
            _ => value.to_string(),
        });
        FieldError::new(
            FieldErrorKind::Invalid,
            "metadata",
            format!("{shown}: {why}"),
        )
    })
}

/// Returns an object as JSON, with its members in the order of Go's fields.
fn in_order(object: &Value, names: &[&str], text: &dyn Fn(&str, &Value) -> String) -> String {
    let members = names.iter().filter_map(|name| {
        let value = object.get(name).filter(|value| !value.is_null())?;
        Some(format!("{name:?}:{}", text(name, value)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_shown_in_the_order_of_gos_fields() {
        let entry =
            json!({"apiVersion": "v1", "fieldsV1": {"f:spec": {}}, "manager": "m", "time": null});
        let review = json!({"metadata": {"managedFields": [entry], "labels": {"a": "b"}, "name": "x",
                "ownerReferences": [{"blockOwnerDeletion": false, "kind": "A", "uid": "u"}]}});
        let error = metadata_error(&review, false).expect("metadata");
        assert_eq!(
            error.message(),
            "Invalid value: {\"name\":\"x\",\"labels\":{\"a\":\"b\"},\"ownerReferences\":[{\"kind\":\"A\",\"uid\":\"u\",\"blockOwnerDeletion\":false}],\"managedFields\":[{\"manager\":\"m\",\"apiVersion\":\"v1\",\"fieldsV1\":{\"f:spec\":{}}}]}: must be empty"
        );
        assert!(metadata_error(&json!({"metadata": {"managedFields": []}}), false).is_none());
    }
}
