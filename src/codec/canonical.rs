//! Normalises an object as Go does by decoding it into its types and encoding it again.
//!
//! In Go, a field that is not a pointer and has its zero value is the same as an absent one: defaults apply to it, and
//! clients that send protobuf send all such strings, numbers and booleans. A quantity is a number in Go, whatever its
//! notation, and a time has one form. So [`canonicalize`] removes zero fields, so that defaults apply to them, and
//! normalises quantities and times. Go writes some zero fields; [`complete`] adds those again. After both, two objects
//! differ only where Go's values differ.
//!
//! Lists, maps and pointers without a value are not added: they would be `null`, which is the same as absent, but for
//! server-side apply ([`complete_with_nulls`]).

use serde_json::{Map, Value};

use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::tables::object_meta;
use super::{quantity, time};

/// Removes the fields that are null or zero to Go, and canonicalises quantities and times. Fields behind pointers stay,
/// and so do structs even if they are empty, since defaults apply within them.
///
/// ```
/// use ringwatch::codec;
/// use serde_json::{Value, json};
///
/// let kind = codec::kind("v1", "ResourceQuota").expect("a built-in kind");
/// let Value::Object(mut object) = json!({
///     "metadata": {"name": "a", "namespace": ""},
///     "spec": {"hard": {"cpu": "1000m"}},
/// }) else {
///     unreachable!("it is an object");
/// };
/// codec::canonicalize(kind, &mut object);
/// assert_eq!(object["metadata"], json!({"name": "a"}));
/// assert_eq!(object["spec"]["hard"]["cpu"], "1");
/// ```
pub fn canonicalize(kind: Kind, object: &mut Map<String, Value>) {
    canonicalize_members(kind.0, object);
}

/// Gives the `metadata` of any object, whose types have been checked, the form that Go's type writes: without what is
/// null or zero, and with the zero fields of owners that Go writes.
pub fn canonicalize_metadata(metadata: &mut Map<String, Value>) {
    canonicalize_members(object_meta(), metadata);
    complete_members(object_meta(), metadata, &zero);
}

/// Adds the fields that Go writes although they are zero.
pub fn complete(kind: Kind, object: &mut Map<String, Value>) {
    complete_members(kind.0, object, &zero);
}

/// Adds the fields that Go writes although they are zero, and as null those that have no zero value but nil, such as
/// lists.
pub fn complete_with_nulls(kind: Kind, object: &mut Map<String, Value>) {
    complete_members(kind.0, object, &|field| {
        let is_nil = || (!field.inline).then_some(Value::Null);
        zero(field).or_else(is_nil)
    });
}

/// Returns the zero value of the field at a dotted path, and true with it if the field is a pointer; `None` if there is
/// no such field. A path element that ends with `[]` leads into the items of a list.
#[must_use]
pub fn empty_at(kind: Kind, path: &str) -> Option<(Value, bool)> {
    let (steps, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut message: &'static Message = kind.0;
    let find = |message: &'static Message, name: &str| {
        let own = message.name_at(name, 0);
        let own = own.map(|at| &message.fields[message.names[at].place]);
        own.or_else(|| message.inline_field(name))
    };
    for step in steps.split('.').filter(|it| !it.is_empty()) {
        let FieldType::Message(id) = find(message, step.trim_end_matches("[]"))?.kind else {
            return None;
        };
        message = id.message();
    }
    let field = find(message, last)?;
    let empty = match (field.arity, field.kind) {
        (Arity::List, _) => Value::Array(Vec::new()),
        (Arity::Map, _) => Map::new().into(),
        (Arity::One, FieldType::Text | FieldType::Bytes) => "".into(),
        (Arity::One, FieldType::Bool) => false.into(),
        (Arity::One, FieldType::Int32 | FieldType::Int64 | FieldType::Double) => 0.into(),
        (Arity::One, FieldType::Message(id)) => match id.message().shape {
            Shape::Object => Map::new().into(),
            Shape::IntOrString => 0.into(),
            _ => Value::Null,
        },
    };
    Some((empty, field.pointer))
}

fn canonicalize_members(message: &'static Message, object: &mut Map<String, Value>) {
    for inner in message.inline_messages() {
        canonicalize_members(inner, object);
    }
    // Names and members are sorted alike: each is found soon after the last one.
    let mut next = 0;
    object.retain(|name, value| {
        let Some(at) = message.name_at(name, next) else {
            return true;
        };
        next = at + 1;
        let field = &message.fields[message.names[at].place];
        for_each_message(field, value, &mut |message, value| match message.shape {
            Shape::Object => {
                if let Some(members) = value.as_object_mut() {
                    canonicalize_members(message, members);
                }
            }
            Shape::Quantity => quantity::canonicalize(value),
            Shape::Time => time::canonicalize(value, false),
            Shape::MicroTime => time::canonicalize(value, true),
            _ => {}
        });
        !vanishes(field, value) || tells_empty(message, value)
    });
}

/// Returns true for an empty list or map of a schema in a definition: Go tells it from an absent one where it judges
/// the schema, and leaves it out where it writes it.
fn tells_empty(message: &Message, value: &Value) -> bool {
    let is_empty = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    is_empty && message.name == "JSONSchemaProps"
}

/// Returns true if Go does not distinguish the member from an absent one.
fn vanishes(field: &Field, value: &Value) -> bool {
    let may_vanish = field.may_vanish || is_scalar(field);
    match value {
        Value::Array(items) => items.is_empty() && field.arity == Arity::List,
        Value::Object(members) => {
            members.is_empty() && (field.arity == Arity::Map || field.may_vanish)
        }
        Value::String(text) => may_vanish && text.is_empty(),
        Value::Bool(truth) => may_vanish && !truth,
        Value::Number(number) => may_vanish && number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}

/// Returns true if the field is one string, number or boolean, and no pointer to it.
fn is_scalar(field: &Field) -> bool {
    let is_message = matches!(field.kind, FieldType::Bytes | FieldType::Message(_));
    field.arity == Arity::One && !field.pointer && !is_message
}

fn complete_members(
    message: &'static Message,
    object: &mut Map<String, Value>,
    zero: &dyn Fn(&Field) -> Option<Value>,
) {
    for inner in message.inline_messages() {
        complete_members(inner, object, zero);
    }
    let mut at = message.first_required;
    while let Some(field) = message.fields.get(at) {
        at = field.next_required.into();
        let missing = object.get(field.name).is_none_or(Value::is_null);
        if let Some(zero) = zero(field).filter(|_| missing) {
            object.insert(field.name.to_owned(), zero);
        }
    }
    let mut next = 0;
    for (name, value) in object.iter_mut() {
        let Some(at) = message.name_at(name, next) else {
            continue;
        };
        next = at + 1;
        let field = &message.fields[message.names[at].place];
        for_each_message(field, value, &mut |message, value| {
            if let (Shape::Object, Some(members)) = (message.shape, value.as_object_mut()) {
                if field.tells_kind {
                    members.insert("kind".to_owned(), message.name.into());
                    members.insert("apiVersion".to_owned(), message.api_version.into());
                }
                complete_members(message, members, zero);
            }
        });
    }
}

/// Returns the value that Go writes for a field without one; `None` if that is `null`.
fn zero(field: &Field) -> Option<Value> {
    if field.pointer || field.inline || field.arity != Arity::One {
        return None;
    }
    match field.kind {
        FieldType::Text => Some("".into()),
        FieldType::Bool => Some(false.into()),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => Some(0.into()),
        FieldType::Bytes => None,
        FieldType::Message(id) => match id.message().shape {
            Shape::Object => Some(Map::new().into()),
            Shape::Quantity => Some("0".into()),
            Shape::IntOrString => Some(0.into()),
            Shape::Duration => Some("0s".into()),
            _ => None,
        },
    }
}

/// Calls a function for the messages in the value of a field: itself, or the items of a list or map.
fn for_each_message(
    field: &Field,
    value: &mut Value,
    visit: &mut dyn FnMut(&'static Message, &mut Value),
) {
    let FieldType::Message(id) = field.kind else {
        return;
    };
    let message = id.message();
    match (field.arity, value) {
        (Arity::One, value) => visit(message, value),
        (Arity::List, Value::Array(items)) => {
            items.iter_mut().for_each(|item| visit(message, item));
        }
        (Arity::Map, Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| visit(message, entry));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
