//! JSON trees to the protobuf message that Go would write for them.
//!
//! Go writes every field that is not a pointer, a list, a map or bytes, even if it is empty. Members with a type that
//! the field cannot have, which kube-apiserver would never have stored, are treated as absent: one malformed member
//! must not make a whole list unreadable.

mod custom;

use serde_json::{Map, Value};
use smallvec::SmallVec;

use super::go_json::whole;
use super::message::{Arity, Field, FieldType, Message, Shape};
use super::typed::base64;
use super::unknown_fields::{self, OldItems, OldMessage};
use super::wire::{put_bytes, put_fixed64, put_nested, put_number};

/// The number of fields that nearly all messages have at most.
const FIELDS_MANY: usize = 64;

/// The values of a message's fields, by index.
type Values<'a> = SmallVec<[Option<&'a Value>; FIELDS_MANY]>;

/// Writes a message; an absent value is an empty one. Fields of the old message that the tables do not know are kept.
pub(super) fn message(
    out: &mut Vec<u8>,
    message: &Message,
    value: Option<&Value>,
    old: OldMessage<'_>,
) {
    if message.shape == Shape::Object {
        members(out, message, value.and_then(Value::as_object), old);
    } else {
        custom::write(out, message, value, old);
    }
}

fn members(
    out: &mut Vec<u8>,
    message: &Message,
    members: Option<&Map<String, Value>>,
    mut old: OldMessage<'_>,
) {
    for (field, value) in message.fields.iter().zip(values(message, members)) {
        let old = old.advance(out, field.number);
        if value.is_none() && field.optional {
            continue;
        }
        if let (true, FieldType::Message(id)) = (field.inline, field.kind) {
            put_nested(out, field.number, |out| {
                let old = OldMessage::new(unknown_fields::content(old));
                self::members(out, id.message(), members, old);
            });
        } else {
            self::field(out, field, value, old);
        }
    }
    old.finish(out);
}

/// Returns the value of each field; `None` if it is null or absent.
fn values<'a>(message: &Message, members: Option<&'a Map<String, Value>>) -> Values<'a> {
    let mut values = Values::from_elem(None, message.fields.len());
    // Names and members are sorted alike: each is found soon after the last one.
    let mut next = 0;
    for (name, value) in members.into_iter().flatten() {
        if let Some(at) = message.name_at(name, next) {
            values[message.names[at].place] = Some(value).filter(|value| !value.is_null());
            next = at + 1;
        }
    }
    values
}

/// Writes a field. `old` are its occurrences in the old message.
fn field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, old: &[u8]) {
    match field.arity {
        Arity::One => one(out, field, value, old),
        Arity::List => list(out, field, value, old),
        Arity::Map => {
            let olds = unknown_fields::entries(old);
            for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
                put_nested(out, field.number, |out| {
                    put_bytes(out, 1, key.as_bytes());
                    let old = olds.get(key.as_bytes()).copied().unwrap_or_default();
                    put(out, 2, field.kind, Some(value), OldMessage::new(old));
                });
            }
        }
    }
}

/// Writes a field that is a list. `old` are its occurrences in the old message.
pub(super) fn list(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, old: &[u8]) {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    let olds = match field.kind {
        FieldType::Message(id) if !old.is_empty() => {
            Some(OldItems::of_list(field, id.message(), old))
        }
        _ => None,
    };
    for (place, item) in items.enumerate() {
        let old = olds.as_ref().map(|olds| olds.find(place, item));
        put(
            out,
            field.number,
            field.kind,
            Some(item),
            old.unwrap_or_default(),
        );
    }
}

/// Writes a field of one value, unless it is optional and absent.
fn one(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, old: &[u8]) {
    let value = value.filter(|value| fits(field.kind, value));
    if value.is_some() || !field.optional {
        let old = OldMessage::new(unknown_fields::content(old));
        put(out, field.number, field.kind, value, old);
    }
}

/// Returns true if the value has the field's type.
fn fits(kind: FieldType, value: &Value) -> bool {
    match kind {
        FieldType::Text | FieldType::Bytes => value.is_string(),
        FieldType::Bool => value.is_boolean(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => value.is_number(),
        FieldType::Message(id) => match id.message().shape {
            Shape::Object => value.is_object(),
            Shape::Items => value.is_array(),
            _ => true,
        },
    }
}

/// Writes one value as a field.
fn put(
    out: &mut Vec<u8>,
    number: u32,
    kind: FieldType,
    value: Option<&Value>,
    old: OldMessage<'_>,
) {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    match kind {
        FieldType::Text => put_bytes(out, number, text.as_bytes()),
        FieldType::Bytes => put_bytes(out, number, &base64(text).unwrap_or_default()),
        FieldType::Bool => put_number(out, number, u64::from(value == Some(&Value::Bool(true)))),
        // 32 bits are written as 64, sign-extended.
        FieldType::Int32 => put_number(out, number, i64::from(whole(value) as i32) as u64),
        FieldType::Int64 => put_number(out, number, whole(value) as u64),
        FieldType::Double => {
            let number_value = value.and_then(Value::as_f64).unwrap_or_default();
            put_fixed64(out, number, number_value.to_bits());
        }
        FieldType::Message(id) => {
            put_nested(out, number, |out| message(out, id.message(), value, old));
        }
    }
}
