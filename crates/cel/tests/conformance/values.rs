//! The values and types of the conformance files as those of expressions.

use std::mem::discriminant;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map};
use ringwatch_cel::Type;

use super::text_format::{Message, Node};

/// Returns a `cel.expr.Value`; the error names what expressions of Kubernetes have no values of.
pub(super) fn value(message: &Message) -> Result<CelValue, String> {
    let Some((kind, node)) = message.0.first() else {
        return Err("a value without a kind".to_owned());
    };
    let word = || node.word();
    Ok(match kind.as_str() {
        "null_value" => CelValue::Null,
        "bool_value" => CelValue::Bool(word() == "true"),
        "int64_value" => CelValue::Int(word().parse().expect("an integer")),
        "uint64_value" => CelValue::UInt(word().parse().expect("an integer")),
        "double_value" => CelValue::Float(word().parse().expect("a number")),
        "string_value" => CelValue::from(node.text()),
        "bytes_value" => CelValue::Bytes(Arc::new(node.bytes().to_vec())),
        "list_value" => {
            let items: Result<Vec<_>, _> = node.message().messages("values").map(value).collect();
            CelValue::List(Arc::new(items?))
        }
        "map_value" => {
            let mut members = std::collections::HashMap::new();
            for entry in node.message().messages("entries") {
                members.insert(key(part(entry, "key"))?, value(part(entry, "value"))?);
            }
            CelValue::Map(Map {
                map: Arc::new(members),
            })
        }
        other => return Err(format!("a value of kind {other}")),
    })
}

fn part<'m>(message: &'m Message, name: &'m str) -> &'m Message {
    message.message(name).expect("a part of an entry")
}

fn key(message: &Message) -> Result<Key, String> {
    match value(message)? {
        CelValue::Int(it) => Ok(Key::Int(it)),
        CelValue::UInt(it) => Ok(Key::Uint(it)),
        CelValue::Bool(it) => Ok(Key::Bool(it)),
        CelValue::String(it) => Ok(Key::String(it)),
        other => Err(format!("a key {other:?}")),
    }
}

/// Returns a `cel.expr.Type`; the error names what expressions of Kubernetes have no types of.
pub(super) fn type_of(message: &Message) -> Result<Type, String> {
    let Some((kind, node)) = message.0.first() else {
        return Err("a type without a kind".to_owned());
    };
    let none = Message::default();
    let inside = |name: &str| type_of(node.message().message(name).unwrap_or(&none));
    Ok(match (kind.as_str(), node) {
        ("dyn" | "type_param", _) => Type::Dyn,
        ("null", _) => Type::Null,
        ("primitive", node) => match node.word() {
            "BOOL" => Type::Bool,
            "INT64" => Type::Int,
            "UINT64" => Type::Uint,
            "DOUBLE" => Type::Double,
            "STRING" => Type::String,
            "BYTES" => Type::Bytes,
            other => return Err(format!("type {other}")),
        },
        ("well_known", node) if node.word() == "TIMESTAMP" => Type::Timestamp,
        ("well_known", node) if node.word() == "DURATION" => Type::Duration,
        ("list_type", _) => Type::list(inside("elem_type")?),
        ("map_type", _) => Type::map(inside("key_type")?, inside("value_type")?),
        ("type", _) => Type::meta(type_of(node.message())?),
        ("abstract_type", Node::Message(of)) if of.text("name") == "optional_type" => {
            Type::optional(inside("parameter_types")?)
        }
        (other, _) => return Err(format!("a type of kind {other}")),
    })
}

/// Returns true if two values are the same and of the same types. No number is the same as itself.
pub(super) fn same(one: &CelValue, other: &CelValue) -> bool {
    match (one, other) {
        (CelValue::Float(one), CelValue::Float(other)) => {
            one == other || (one.is_nan() && other.is_nan())
        }
        (CelValue::List(one), CelValue::List(other)) => {
            let mut pairs = one.iter().zip(other.iter());
            one.len() == other.len() && pairs.all(|(one, other)| same(one, other))
        }
        (CelValue::Map(one), CelValue::Map(other)) => {
            let mut members = one.map.iter();
            one.map.len() == other.map.len()
                && members.all(|(key, one)| other.map.get(key).is_some_and(|it| same(one, it)))
        }
        (one, other) => discriminant(one) == discriminant(other) && one == other,
    }
}
