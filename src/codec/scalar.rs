//! A scalar of a message, by its path in JSON.

use super::message::{Arity, Field, FieldType, Message};
use super::wire::{Content, Fields};

/// Returns the scalar at a dotted path, as selectors compare it; `None` where JSON would not have it.
///
/// The message has been decoded as a whole before, so broken bytes are not reported here.
pub(super) fn scalar_at(message: &Message, bytes: &[u8], path: &str) -> Option<Box<str>> {
    let (name, rest) = path
        .split_once('.')
        .map_or((path, None), |(name, rest)| (name, Some(rest)));
    for field in message.fields.iter().filter(|it| it.inline) {
        if let FieldType::Message(id) = field.kind
            && let Some(found) = find(field, bytes, |content| match content {
                Content::Bytes(inner) => scalar_at(id.message(), inner, path),
                _ => None,
            })
        {
            return Some(found);
        }
    }
    let field = message.fields.iter().find(|it| it.name == name)?;
    if field.arity != Arity::One || field.inline {
        return None;
    }
    match (field.kind, rest) {
        (FieldType::Message(id), Some(rest)) => find(field, bytes, |content| match content {
            Content::Bytes(inner) => scalar_at(id.message(), inner, rest),
            _ => None,
        }),
        (kind, None) => find(field, bytes, |content| scalar(kind, content))
            .filter(|found| field.pointer || !field.omit_empty || !is_empty(kind, found)),
        (_, Some(_)) => None,
    }
}

/// Returns the field's value: the last occurrence that can be read.
fn find(
    field: &Field,
    bytes: &[u8],
    read: impl Fn(Content<'_>) -> Option<Box<str>>,
) -> Option<Box<str>> {
    let mut fields = Fields::new(bytes);
    let mut found = None;
    while let Ok(Some((number, content))) = fields.next_field() {
        if number == field.number {
            found = read(content).or(found);
        }
    }
    found
}

fn scalar(kind: FieldType, content: Content<'_>) -> Option<Box<str>> {
    match (kind, content) {
        (FieldType::Text, Content::Bytes(text)) => Some(String::from_utf8_lossy(text).into()),
        (FieldType::Bool, Content::Varint(number)) => Some((number != 0).to_string().into()),
        (FieldType::Int32, Content::Varint(number)) => Some((number as i32).to_string().into()),
        (FieldType::Int64, Content::Varint(number)) => Some((number as i64).to_string().into()),
        _ => None,
    }
}

/// Returns true if JSON omits the scalar where the field says `omitempty`.
fn is_empty(kind: FieldType, scalar: &str) -> bool {
    match kind {
        FieldType::Bool => scalar == "false",
        FieldType::Int32 | FieldType::Int64 => scalar == "0",
        _ => scalar.is_empty(),
    }
}
