//! Whole Kubernetes objects inside an object: they need kind and apiVersion, and their metadata has to be good.

use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::validation::formats::dns_1035_label;
use ringwatch_apimachinery::validation::validate_object_meta;
use ringwatch_apimachinery::{FieldError, FieldErrorKind, NameRule};
use serde_json::{Value, json};

use super::node::SchemaNode;
use super::outcome::SchemaErrors;
use super::path::Path;

/// Checks the embedded objects in a value.
pub(super) fn validate(
    node: &SchemaNode,
    value: &Value,
    path: &mut Path,
    outcome: &mut SchemaErrors,
) {
    validate_part(node, value, node.embedded, path, outcome);
}

/// Checks the embedded objects in a value, which is one itself if `is_object` says so.
pub(super) fn validate_part(
    node: &SchemaNode,
    value: &Value,
    is_object: bool,
    path: &mut Path,
    outcome: &mut SchemaErrors,
) {
    match value {
        Value::Object(members) => {
            if is_object {
                check_type_meta(value, path, outcome);
                check_metadata(value, path, outcome);
            }
            for (name, value) in members {
                if let Some(inner) = node.member(name) {
                    let mark = path.member_of(node, name);
                    validate(inner, value, path, outcome);
                    path.leave(mark);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                let mark = path.index(index);
                validate(inner, item, path, outcome);
                path.leave(mark);
            }
        }
        _ => {}
    }
}

fn check_type_meta(object: &Value, path: &mut Path, outcome: &mut SchemaErrors) {
    for name in ["apiVersion", "kind"] {
        let mark = path.member(name);
        match object.get(name) {
            None => outcome.push(path, || FieldError::required(path.field())),
            Some(empty) if empty == "" => push(path, empty, "must not be empty", outcome),
            Some(Value::String(text)) => {
                if let Some(why) = wrong(name, text) {
                    push(path, &Value::from(text.as_str()), &why, outcome);
                }
            }
            Some(other) => push(path, other, "must be a string", outcome),
        }
        path.leave(mark);
    }
}

fn wrong(name: &str, text: &str) -> Option<String> {
    if name == "apiVersion" {
        let slashes = text.matches('/').count();
        return (slashes > 1).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let wrong = dns_1035_label(&text.to_lowercase()).join(",");
    let words = "may have mixed case, but should otherwise match: ";
    (!wrong.is_empty()).then(|| format!("{words}{wrong}"))
}

fn check_metadata(object: &Value, path: &mut Path, outcome: &mut SchemaErrors) {
    let Some(metadata) = object.get("metadata") else {
        return;
    };
    if !metadata.is_object() {
        let mark = path.member("metadata");
        push(path, metadata, "must be an object", outcome);
        return path.leave(mark);
    }
    let mut metadata = metadata.clone();
    // An embedded object need not have a name, but if it has one, it is checked.
    if metadata["name"].as_str().is_none_or(str::is_empty) {
        metadata["name"] = Value::from("unnamed");
    }
    let namespaced = metadata["namespace"]
        .as_str()
        .is_some_and(|namespace| !namespace.is_empty());
    let object = json!({"metadata": metadata});
    for mut error in validate_object_meta(&object, namespaced, NameRule::PathSegment) {
        let mark = path.member(&error.field);
        outcome.push(path, || {
            error.field = path.field();
            error
        });
        path.leave(mark);
    }
}

fn push(path: &Path, value: &Value, why: &str, outcome: &mut SchemaErrors) {
    outcome.push(path, || {
        let detail = format!("{}: {why}", bad_value(value));
        FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
    });
}
