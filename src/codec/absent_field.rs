//! The JSON that Go writes for a field that is absent from the wire.
//!
//! Go omits an empty field with `omitempty`, except structs, which are never empty to it. All others are written:
//! pointers, lists, maps and bytes as `null`, the rest as empty values.

use super::message::{Arity, Field, FieldType, Message, MessageId, Shape};

/// Returns the JSON member of an absent field, with a comma at its end; empty if Go omits it. `find` resolves message
/// ids.
pub(super) fn json<'a>(field: &Field, find: &dyn Fn(MessageId) -> &'a Message) -> Vec<u8> {
    let nested = match (field.arity, field.kind) {
        (Arity::One, FieldType::Message(id)) => Some(find(id)),
        _ => None,
    };
    if let (true, Some(inline)) = (field.inline, nested) {
        return members(inline, find);
    }
    let is_struct = !field.pointer && nested.is_some_and(|it| it.shape != Shape::Items);
    if field.omit_zero || field.omit_empty && !is_struct {
        return Vec::new();
    }
    let value = match nested {
        Some(message) if is_struct => message_json(message, find),
        _ if field.pointer || field.arity != Arity::One => b"null".to_vec(),
        _ => match field.kind {
            FieldType::Text => b"\"\"".to_vec(),
            FieldType::Bool => b"false".to_vec(),
            FieldType::Int32 | FieldType::Int64 | FieldType::Double => b"0".to_vec(),
            FieldType::Bytes | FieldType::Message(_) => b"null".to_vec(),
        },
    };
    [&field.key[..], &value, b","].concat()
}

/// Returns true if Go's JSON omits some value of a field that is on the wire.
pub(super) fn may_vanish<'a>(field: &Field, find: &dyn Fn(MessageId) -> &'a Message) -> bool {
    let is_struct = match field.kind {
        FieldType::Message(id) => find(id).shape != Shape::Items,
        _ => false,
    };
    let one = field.arity == Arity::One && !field.pointer;
    one && (field.omit_zero || field.omit_empty && !is_struct)
}

/// Returns true if Go writes nothing to the wire when a field is absent.
pub(super) fn is_optional<'a>(field: &Field, find: &dyn Fn(MessageId) -> &'a Message) -> bool {
    match field.kind {
        _ if field.inline => false,
        _ if field.pointer || field.arity != Arity::One => true,
        FieldType::Bytes => true,
        FieldType::Message(id) => find(id).shape == Shape::Items,
        _ => false,
    }
}

/// Returns the JSON members of a message without any bytes.
fn members<'a>(message: &Message, find: &dyn Fn(MessageId) -> &'a Message) -> Vec<u8> {
    let fields = message.fields.iter();
    fields.flat_map(|field| json(field, find)).collect()
}

/// Returns the JSON of a message without any bytes.
fn message_json<'a>(message: &Message, find: &dyn Fn(MessageId) -> &'a Message) -> Vec<u8> {
    let text: &[u8] = match message.shape {
        Shape::Object => {
            let members = members(message, find);
            let members = members.strip_suffix(b",").unwrap_or(&members);
            return [b"{", members, b"}"].concat();
        }
        Shape::IntOrString => b"0",
        Shape::Quantity => b"\"0\"",
        Shape::Duration => b"\"0s\"",
        Shape::SchemaOrBool => b"false",
        Shape::Items
        | Shape::Time
        | Shape::MicroTime
        | Shape::RawExtension
        | Shape::Json
        | Shape::SchemaOrArray
        | Shape::SchemaOrTexts => b"null",
    };
    text.to_vec()
}
