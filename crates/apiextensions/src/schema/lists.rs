//! Lists whose items have to differ: `x-kubernetes-list-type` set and map.

use std::borrow::Cow;
use std::collections::HashMap;

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
                ListType::Set => check_set(items.iter().map(Cow::Borrowed), path, outcome),
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
    let key_of = |item: &Value| {
        let member = |key: &String| Some((key.clone(), item.get(key)?.clone()));
        let members: Map<String, Value> = keys.iter().filter_map(member).collect();
        Cow::Owned(Value::Object(members))
    };
    check_set(items.iter().map(key_of), path, outcome);
}

/// Tells the second of equal values, once however often it comes again.
fn check_set<'v>(
    values: impl Iterator<Item = Cow<'v, Value>>,
    path: &mut Path,
    outcome: &mut SchemaErrors,
) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            let mark = path.index(index);
            outcome.push(path, || {
                FieldError::new(FieldErrorKind::Duplicate, path.field(), bad_value(&value))
            });
            path.leave(mark);
        }
    }
}
