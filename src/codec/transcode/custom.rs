//! Messages with a JSON form of their own (Go's `MarshalJSON`), from protobuf to JSON.
//!
//! Such a message has few fields, which are read in any order. The last of several counts, so that none of them is ever
//! out of order.

use super::Transcoder;
use crate::codec::error::WireError;
use crate::codec::message::{FieldType, Message, Shape};
use crate::codec::wire::{Content, Fields};
use crate::codec::{duration, envelope, json_string, raw_json, time};

/// The seconds of Go's zero time, the year 1, which is `null` in JSON.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// The fields of such a message, by number; the last of several counts.
#[derive(Default)]
struct CustomFields<'a> {
    first_number: u64,
    second_number: u64,
    first: Option<&'a [u8]>,
    third: Option<&'a [u8]>,
}

/// Writes a message as the JSON of its shape.
///
/// # Errors
/// [`WireError`] when the bytes are broken or exceed the limits.
pub(super) fn write(
    transcoder: &mut Transcoder,
    message: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<(), WireError> {
    let out = &mut transcoder.out;
    match message.shape {
        Shape::Object => transcoder.message(message, bytes, depth)?,
        Shape::Items => return items(transcoder, message, bytes),
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts => {
            return schema_or(transcoder, message, bytes, depth);
        }
        Shape::Time | Shape::MicroTime if bytes.is_empty() => out.put(b"null"),
        shape => {
            let parts = CustomFields::read(message, bytes)?;
            let raw = parts.first.unwrap_or_default();
            match shape {
                Shape::IntOrString if parts.first_number == 0 => {
                    out.whole(i64::from(parts.second_number as i32));
                }
                Shape::IntOrString => json_string::put(out, parts.third.unwrap_or_default()),
                Shape::Quantity if raw.is_empty() => out.put(b"\"0\""),
                Shape::Quantity => json_string::put(out, raw),
                Shape::Time | Shape::MicroTime => return parts.time(transcoder, shape),
                Shape::Duration => {
                    let text = duration::format(parts.first_number as i64);
                    json_string::put(out, text.as_bytes());
                }
                _ if raw.is_empty() => out.put(b"null"),
                Shape::RawExtension if raw.starts_with(&envelope::MAGIC) => {
                    let (unknown, found) = envelope::typed(raw)?;
                    let (version, kind) = (&unknown.api_version, &unknown.kind);
                    transcoder.typed(found.0, unknown.raw, version, kind, depth + 1)?;
                }
                _ => raw_json::put(out, raw, depth)?,
            }
        }
    }
    Ok(())
}

impl<'a> CustomFields<'a> {
    fn read(message: &Message, bytes: &'a [u8]) -> Result<Self, WireError> {
        let begins_with_number = message.fields.first().is_some_and(|it| it.wire_type == 0);
        let mut parts = Self::default();
        let mut fields = Fields::new(bytes);
        while let Some((number, content)) = fields.next_field()? {
            match (number, content) {
                (1, Content::Varint(value)) if begins_with_number => parts.first_number = value,
                (2, Content::Varint(value)) => parts.second_number = value,
                (1, Content::Bytes(value)) if !begins_with_number => parts.first = Some(value),
                (3, Content::Bytes(value)) => parts.third = Some(value),
                (number, content) => refuse(message, number, content)?,
            }
        }
        Ok(parts)
    }

    fn time(&self, transcoder: &mut Transcoder, shape: Shape) -> Result<(), WireError> {
        let (seconds, nanos) = (self.first_number as i64, self.second_number as i32);
        let out = &mut transcoder.out;
        if seconds == ZERO_TIME_SECONDS && (shape == Shape::Time || nanos == 0) {
            out.put(b"null");
            return Ok(());
        }
        match shape {
            Shape::Time => json_string::put(out, &time::seconds(seconds)?),
            _ => json_string::put(out, time::micros(seconds, nanos)?.as_bytes()),
        }
        Ok(())
    }
}

/// Refuses content of another wire type than that of the field of this number, if there is one.
#[cold]
fn refuse(message: &Message, number: u32, content: Content<'_>) -> Result<(), WireError> {
    let wire_type = content.wire_type();
    match message.field(number) {
        Some(field) if field.wire_type != wire_type => Err(field.wrong_type(wire_type)),
        _ => Ok(()),
    }
}

/// Writes a list of strings, which is a message only on the wire: without strings it is none to Go.
fn items(transcoder: &mut Transcoder, message: &Message, bytes: &[u8]) -> Result<(), WireError> {
    let start = transcoder.out.len();
    transcoder.out.push(b'[');
    let mut fields = Fields::new(bytes);
    while let Some((number, content)) = fields.next_field()? {
        if let (1, Content::Bytes(item)) = (number, content) {
            json_string::put(&mut transcoder.out, item);
            transcoder.out.push(b',');
        } else {
            refuse(message, number, content)?;
        }
    }
    if transcoder.out.len() == start + 1 {
        transcoder.out.truncate(start);
        transcoder.out.put(b"null");
    } else {
        transcoder.out.close(b']');
    }
    Ok(())
}

/// Writes a schema, or the value that may replace it. Go prefers the list to the single schema.
fn schema_or(
    transcoder: &mut Transcoder,
    message: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<(), WireError> {
    let schema = message.fields.iter().find_map(|field| match field.kind {
        FieldType::Message(id) => Some(id.message()),
        _ => None,
    });
    let is_bool = message.shape == Shape::SchemaOrBool;
    let (mut one, mut allows, mut listed) = (None, false, false);
    let mut fields = Fields::new(bytes);
    while let Some((number, content)) = fields.next_field()? {
        match (number, content) {
            (1, Content::Varint(value)) if is_bool => allows = value != 0,
            (2, Content::Bytes(_)) if !is_bool => listed = true,
            (1 | 2, Content::Bytes(value)) if one.replace(value).is_some() => {
                return Err(WireError::OutOfOrder);
            }
            _ => refuse(message, number, content)?,
        }
    }
    match (schema, one) {
        (Some(schema), _) if listed => {
            return list(transcoder, message.shape, schema, bytes, depth);
        }
        (Some(schema), Some(bytes)) => return transcoder.message(schema, bytes, depth),
        _ if !is_bool => transcoder.out.put(b"null"),
        _ => transcoder.out.put(if allows { b"true" } else { b"false" }),
    }
    Ok(())
}

/// Writes the list that replaces a schema: of schemas or of strings.
fn list(
    transcoder: &mut Transcoder,
    shape: Shape,
    schema: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<(), WireError> {
    transcoder.out.push(b'[');
    let mut fields = Fields::new(bytes);
    while let Some((number, content)) = fields.next_field()? {
        if let (2, Content::Bytes(item)) = (number, content) {
            match shape {
                Shape::SchemaOrArray => transcoder.message(schema, item, depth + 1)?,
                _ => json_string::put(&mut transcoder.out, item),
            }
            transcoder.out.push(b',');
        }
    }
    transcoder.out.close(b']');
    Ok(())
}
