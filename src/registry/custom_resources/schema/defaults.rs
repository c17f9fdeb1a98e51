//! Writes what a schema gives where an object says nothing.
//!
//! A null that a schema does not allow says nothing either: the default takes its place, and without a default the
//! member goes. Then the walk goes on into what is there, defaults included, so one walk is enough: another one
//! changes nothing.

use serde_json::{Map, Value};

use super::node::Node;

/// Writes the defaults of a schema into a value.
pub(super) fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => fill_members(node, members),
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for item in items {
                if let (true, Some(default)) = (is_refused_null(inner, item), &inner.default) {
                    *item = default.clone();
                }
                fill(inner, item);
            }
        }
        _ => {}
    }
}

fn fill_members(node: &Node, members: &mut Map<String, Value>) {
    for (name, property) in &node.properties {
        if let Some(default) = &property.default {
            let said = members.get(name);
            if said.is_none_or(|value| is_refused_null(property, value)) {
                members.insert(name.clone(), default.clone());
            }
        }
    }
    members.retain(|name, value| {
        let Some(inner) = node.member(name) else {
            return true;
        };
        if is_refused_null(inner, value) {
            let Some(default) = &inner.default else {
                return false;
            };
            *value = default.clone();
        }
        fill(inner, value);
        true
    });
}

fn is_refused_null(node: &Node, value: &Value) -> bool {
    value.is_null() && !node.nullable
}
