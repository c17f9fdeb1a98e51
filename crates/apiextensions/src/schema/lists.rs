//! Lists whose items have to differ: `x-kubernetes-list-type` set and map.

use std::borrow::Cow;
use std::collections::HashMap;

use ringwatch::meta::json_text;
use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

use super::node::{ListType, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;

/// Checks the lists in a value.
pub(super) fn validate(
    node: &SchemaNode,
    value: &Value,
    path: &mut Path,
    outcome: &mut SchemaErrors,
) {
    match value {
        Value::Array(items) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => check_keys(items.iter().map(ListKey::of_item), path, outcome),
                ListType::Map(keys) => check_map(items, keys, path, outcome),
            }
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                let mark = path.index(index);
                validate(inner, item, path, outcome);
                path.leave(mark);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let Some(inner) = node.member(name) else {
                    continue;
                };
                let mark = path.member_of(node, name);
                validate(inner, value, path, outcome);
                path.leave(mark);
            }
        }
        _ => {}
    }
}

fn check_map(items: &[Value], keys: &[String], path: &mut Path, outcome: &mut SchemaErrors) {
    let wrong = |item: &Value| !item.is_null() && !item.is_object();
    if let Some(index) = items.iter().position(wrong) {
        let mark = path.index(index);
        outcome.push(path, || {
            let item = bad_value(&items[index]);
            let detail = format!("{item}: must be an object for an array of list-type map");
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
        return path.leave(mark);
    }
    check_keys(
        items.iter().map(|item| ListKey::of_members(item, keys)),
        path,
        outcome,
    );
}

/// The key of an item of a list.
struct ListKey<'v> {
    /// The text by which keys are compared.
    text: String,
    /// The key as errors show it.
    shown: Cow<'v, Value>,
}

impl<'v> ListKey<'v> {
    fn of_item(item: &'v Value) -> Self {
        Self {
            text: text_of(item),
            shown: Cow::Borrowed(item),
        }
    }

    /// Makes the key of an item that these members identify.
    fn of_members(item: &Value, keys: &[String]) -> Self {
        let member = |key: &String| Some((key.clone(), item.get(key)?.clone()));
        let members: Map<String, Value> = keys.iter().filter_map(member).collect();
        let shown = Value::Object(members);
        let text = match keys {
            [key] => item.get(key).map(text_of).unwrap_or_default(),
            _ => text_of(&shown),
        };
        Self {
            text,
            shown: Cow::Owned(shown),
        }
    }
}

/// Returns the text by which values are compared. An integer is none of the floats, but is written as one of them
/// within lists and objects.
fn text_of(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => json_text(value),
        Value::Number(number) if !number.is_i64() => {
            let float = number.as_f64().unwrap_or_default();
            // The sum makes one of both zeros.
            Value::from(float + 0.0).to_string()
        }
        other => other.to_string(),
    }
}

/// Tells the second of equal keys, once however often it comes again.
fn check_keys<'v>(
    keys: impl Iterator<Item = ListKey<'v>>,
    path: &mut Path,
    outcome: &mut SchemaErrors,
) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, key) in keys.enumerate() {
        let times = seen.entry(key.text).or_default();
        *times += 1;
        if *times == 2 {
            let mark = path.index(index);
            outcome.push(path, || {
                FieldError::new(
                    FieldErrorKind::Duplicate,
                    path.field(),
                    bad_value(&key.shown),
                )
            });
            path.leave(mark);
        }
    }
}
