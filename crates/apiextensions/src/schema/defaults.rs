//! Writes what a schema gives where an object says nothing.
//!
//! A null that a schema does not allow says nothing either: the default takes its place, and without a default the
//! member goes, unless server-side apply has put it there. Then the walk goes on into what is there, defaults included,
//! so one walk is enough: another one changes nothing.
//!
//! A long default in every item of a long list would make gigabytes of a small request. So no more is written than any
//! object may have.

use serde_json::{Map, Value};

use super::node::SchemaNode;

/// Bytes that defaults add to an object at most, without punctuation. An object that comes so far is larger than any
/// store takes, and is refused there.
const DEFAULTS_BYTES_MAX: usize = 16 << 20;

/// The treatment of nulls that a schema does not allow and for which it has no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    /// They go, as when kube-apiserver decodes an object.
    Removed,
    /// They stay for validation to refuse, as after a server-side apply.
    Kept,
}

/// Writes the defaults of a schema into a value.
pub(super) fn fill(root: &SchemaNode, value: &mut Value, nulls: Nulls) {
    let mut filler = Filler {
        bytes_left: DEFAULTS_BYTES_MAX,
        nulls,
    };
    filler.fill(root, value);
}

/// Removes the nulls that a schema does not allow and has no default for. Follows
/// `PruneNonNullableNullsWithoutDefaults`.
pub(super) fn drop_nulls(node: &SchemaNode, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let Some(inner) = node.member(name) else {
                return true;
            };
            drop_nulls(inner, value);
            inner.default.is_some() || !is_refused_null(inner, value)
        }),
        Value::Array(items) => {
            if let Some(inner) = node.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(inner, item));
            }
        }
        _ => {}
    }
}

struct Filler {
    bytes_left: usize,
    nulls: Nulls,
}

impl Filler {
    fn fill(&mut self, node: &SchemaNode, value: &mut Value) {
        match value {
            Value::Object(members) => self.fill_members(node, members),
            Value::Array(items) => {
                let Some(inner) = node.items.as_deref() else {
                    return;
                };
                for item in items {
                    if is_refused_null(inner, item)
                        && let Some(default) = self.copy(inner)
                    {
                        *item = default;
                    }
                    self.fill(inner, item);
                }
            }
            _ => {}
        }
    }

    fn fill_members(&mut self, node: &SchemaNode, members: &mut Map<String, Value>) {
        for (name, property) in &node.properties {
            let said = members.get(name);
            if said.is_none_or(|value| is_refused_null(property, value))
                && let Some(default) = self.copy(property)
            {
                members.insert(name.clone(), default);
            }
        }
        members.retain(|name, value| {
            let Some(inner) = node.member(name) else {
                return true;
            };
            if is_refused_null(inner, value) {
                let Some(default) = self.copy(inner) else {
                    return self.nulls == Nulls::Kept;
                };
                *value = default;
            }
            self.fill(inner, value);
            true
        });
    }

    /// Returns the default of a schema, if it has one and there is room for it.
    fn copy(&mut self, node: &SchemaNode) -> Option<Value> {
        let default = node.default.as_ref()?;
        self.bytes_left = self.bytes_left.checked_sub(bytes(default))?;
        Some(default.clone())
    }
}

/// Returns roughly the number of bytes of a value.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum::<usize>() + items.len(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
    }
}

fn is_refused_null(node: &SchemaNode, value: &Value) -> bool {
    value.is_null() && !node.nullable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::StructuralSchema;

    #[test]
    fn nulls_go_unless_they_are_allowed_or_have_a_default() {
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {
            "plain": text, "nullable": {"type": "string", "nullable": true},
            "given": {"type": "string", "default": "x"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": text}}},
            "map": {"type": "object", "additionalProperties": text}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let mut object = json!({"plain": null, "nullable": null, "given": null,
            "list": [null, {"a": null}], "map": {"a": null, "b": "c"}, "unknown": null});
        schema.drop_nulls(&mut object);
        let left = json!({"nullable": null, "given": null, "list": [null, {}], "map": {"b": "c"},
            "unknown": null});
        assert_eq!(object, left);
    }

    #[test]
    fn nulls_without_a_default_go_or_stay() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "nullable": true},
            "c": {"type": "string", "default": "c"}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let nulls = json!({"a": null, "b": null, "c": null});
        let (mut decoded, mut applied) = (nulls.clone(), nulls);
        schema.default(&mut decoded);
        assert_eq!(decoded, json!({"b": null, "c": "c"}));
        schema.default_applied(&mut applied);
        assert_eq!(applied, json!({"a": null, "b": null, "c": "c"}));
    }

    #[test]
    fn defaults_make_no_more_of_an_object_than_a_store_could_take() {
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {
            "type": "object", "properties": {"text": {"type": "string", "default": "x".repeat(1 << 20)}}}}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let mut object = json!({"list": vec![json!({}); 10_000]});
        schema.default(&mut object);
        let with = object["list"].as_array().expect("a list").iter();
        let with = with.filter(|item| item.get("text").is_some()).count();
        assert_eq!(with, DEFAULTS_BYTES_MAX >> 20);
    }
}
