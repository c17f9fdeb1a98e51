//! Quantities that are equal and written differently, such as `1Gi` and `1073741824`.
//!
//! Kubernetes compares quantities by their values (`apiequality.Semantic`). Here objects are compared as trees, so
//! before an update is judged, the old object gets the texts of the new one's equal quantities.

use serde_json::{Map, Value};

use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::quantity;

/// Returns the object with equal quantities written as in the other one; `None` if all are.
#[must_use]
pub fn with_quantities_of(kind: Kind, object: &Value, other: &Value) -> Option<Value> {
    let (Value::Object(members), Value::Object(others)) = (object, other) else {
        return None;
    };
    // Metadata, which may be most of an object, have no quantities.
    let field = |name: &str| (name != "metadata").then(|| field(kind.0, name))?;
    rewritten_members(members, others, field, in_field)
}

fn rewritten(message: &'static Message, value: &Value, other: &Value) -> Option<Value> {
    match (message.shape, value, other) {
        (Shape::Quantity, Value::String(text), Value::String(wanted)) => {
            let rewrites = text != wanted && quantity::are_equal(text, wanted);
            rewrites.then(|| other.clone())
        }
        (Shape::Object, Value::Object(members), Value::Object(others)) => {
            rewritten_members(members, others, |name| field(message, name), in_field)
        }
        _ => None,
    }
}

/// Returns the field of a name, if there may be quantities in it.
fn field(message: &'static Message, name: &str) -> Option<&'static Field> {
    let own = message.name_at(name, 0).map(|at| message.names[at].place);
    let own = own.map(|place| &message.fields[place]);
    own.or_else(|| message.inline_field(name))
        .filter(|field| matches!(field.kind, FieldType::Message(_)))
}

fn in_field(field: &'static Field, value: &Value, other: &Value) -> Option<Value> {
    let FieldType::Message(id) = field.kind else {
        return None;
    };
    let message = id.message();
    match (field.arity, value, other) {
        (Arity::One, value, other) => rewritten(message, value, other),
        (Arity::List, Value::Array(items), Value::Array(others)) => {
            rewritten_items(message, items, others)
        }
        (Arity::Map, Value::Object(members), Value::Object(others)) => {
            rewritten_members(members, others, |_| Some(message), rewritten)
        }
        _ => None,
    }
}

fn rewritten_items(message: &'static Message, items: &[Value], others: &[Value]) -> Option<Value> {
    let pairs = items.iter().zip(others).enumerate();
    let mut all: Option<Vec<Value>> = None;
    for (at, (item, other)) in pairs {
        if let Some(item) = rewritten(message, item, other) {
            all.get_or_insert_with(|| items.to_vec())[at] = item;
        }
    }
    all.map(Value::Array)
}

/// Rewrites the members that have a definition, each by it.
fn rewritten_members<D>(
    members: &Map<String, Value>,
    others: &Map<String, Value>,
    definition: impl Fn(&str) -> Option<D>,
    rewrite: impl Fn(D, &Value, &Value) -> Option<Value>,
) -> Option<Value> {
    let mut all: Option<Map<String, Value>> = None;
    for (name, value) in members {
        if let Some(other) = others.get(name)
            && let Some(definition) = definition(name)
            && let Some(value) = rewrite(definition, value, other)
        {
            let all = all.get_or_insert_with(|| members.clone());
            all.insert(name.clone(), value);
        }
    }
    all.map(Value::Object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::kind;

    #[test]
    fn equal_quantities_are_written_alike() {
        let pod = |memory: &str, cpu: &str, label: &str, size: &str| {
            json!({"metadata": {"labels": {"memory": label}}, "spec": {
                "containers": [{"name": "c", "env": [{"name": "e", "value": label}],
                    "resources": {"limits": {"memory": memory, "cpu": cpu}}}],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": size}}]}})
        };
        let kind = kind("v1", "Pod").expect("a kind");
        let aligned = |old: &Value, new: &Value| with_quantities_of(kind, old, new);
        let old = pod("1Gi", "1", "1Gi", "1000");
        let new = pod("1073741824", "2", "1073741824", "1k");
        assert_eq!(
            aligned(&old, &new),
            Some(pod("1073741824", "1", "1Gi", "1k")),
            "what is no quantity, or another one, stays"
        );
        assert_eq!(aligned(&old, &old), None);
        assert_eq!(aligned(&old, &json!({"spec": {"containers": []}})), None);
    }
}
