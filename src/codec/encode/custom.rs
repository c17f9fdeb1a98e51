//! Messages with a JSON form of their own (Go's `MarshalJSON`), from JSON to protobuf.

use serde_json::Value;

use super::{list, message};
use crate::codec::go_json::{self, whole};
use crate::codec::message::{Arity, FieldType, Message, Shape};
use crate::codec::unknown_fields::{self, OldMessage};
use crate::codec::wire::{put_bytes, put_nested, put_number};
use crate::codec::{duration, time};
use crate::meta::put_json;

/// The nanoseconds of a microsecond, the precision of a MicroTime.
const NANOS_PER_MICRO: i32 = 1000;

/// Writes a message of which the JSON has a form of its own; an absent value is an empty one.
pub(super) fn write(
    out: &mut Vec<u8>,
    message: &Message,
    value: Option<&Value>,
    old: OldMessage<'_>,
) {
    let value = value.filter(|value| !value.is_null());
    let text = value.and_then(Value::as_str);
    match message.shape {
        Shape::Object => {}
        Shape::Items => {
            for item in value.and_then(Value::as_array).into_iter().flatten() {
                put_bytes(out, 1, item.as_str().unwrap_or_default().as_bytes());
            }
        }
        Shape::IntOrString => {
            put_number(out, 1, u64::from(text.is_some()));
            put_number(out, 2, i64::from(whole(value) as i32) as u64);
            put_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }
        Shape::Quantity => match value {
            Some(Value::Number(number)) => put_bytes(out, 1, number.to_string().as_bytes()),
            _ => put_bytes(out, 1, text.unwrap_or("0").as_bytes()),
        },
        Shape::Time => {
            if let Some((seconds, _)) = text.and_then(time::parse) {
                put_number(out, 1, seconds as u64);
                put_number(out, 2, 0);
            }
        }
        Shape::MicroTime => {
            if let Some((seconds, nanos)) = text.and_then(time::parse) {
                let nanos = i64::from(nanos - nanos % NANOS_PER_MICRO);
                put_number(out, 1, seconds as u64);
                put_number(out, 2, nanos as u64);
            }
        }
        Shape::Duration => {
            let nanos = text.and_then(duration::parse).unwrap_or_default();
            put_number(out, 1, nanos as u64);
        }
        Shape::Json => {
            if let Some(value) = value {
                put_nested(out, 1, |out| put_json(out, value));
            }
        }
        Shape::RawExtension => {
            if let Some(value) = value {
                match old.raw_json().filter(|raw| says(raw, value)) {
                    Some(raw) => put_bytes(out, 1, raw),
                    None => put_nested(out, 1, |out| go_json::write(out, value)),
                }
            }
        }
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts => {
            schema_or(out, message, value, old);
        }
    }
}

/// Returns true if JSON says the same as a tree.
fn says(raw: &[u8], value: &Value) -> bool {
    serde_json::from_slice(raw).is_ok_and(|it: Value| it == *value)
}

/// Writes a schema, or the value that may replace it.
fn schema_or(out: &mut Vec<u8>, parent: &Message, value: Option<&Value>, mut old: OldMessage<'_>) {
    for field in &parent.fields {
        let old = old.advance(out, field.number);
        match (field.arity, field.kind) {
            (Arity::One, FieldType::Bool) => {
                let allows = matches!(value, Some(Value::Object(_) | Value::Bool(true)));
                put_number(out, field.number, u64::from(allows));
            }
            (Arity::One, FieldType::Message(id)) => {
                if let Some(value) = value.filter(|value| value.is_object()) {
                    let old = OldMessage::new(unknown_fields::content(old));
                    put_nested(out, field.number, |out| {
                        message(out, id.message(), Some(value), old);
                    });
                }
            }
            _ => list(out, field, value, old),
        }
    }
    old.finish(out);
}
