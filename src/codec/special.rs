//! The messages whose JSON is not an object of their fields, from the wire.

use serde_json::Value;

use super::decode::{Decoder, NESTING_MAX};
use super::envelope;
use super::error::WireError;
use super::tables::{Message, Shape, Type};
use super::wire::{Content, Fields};
use super::{duration, time};

/// What the special messages are made of, by field number; the last one wins where one is wanted.
#[derive(Default)]
struct Parts<'a> {
    first_number: u64,
    second_number: u64,
    first: Option<&'a [u8]>,
    third: Option<&'a [u8]>,
    firsts: Vec<&'a [u8]>,
    seconds: Vec<&'a [u8]>,
}

/// Reads a message that is not of the shape of an object.
///
/// # Errors
/// [`WireError`] when the bytes are broken or beyond the bounds.
pub(super) fn read(
    decoder: &mut Decoder,
    message: &Message,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, WireError> {
    let parts = Parts::read(decoder, bytes)?;
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    Ok(match message.shape {
        Shape::Object => Value::Null,
        Shape::Items => {
            let items = parts.firsts.iter().map(|item| text(Some(item)).into());
            Value::Array(items.collect())
        }
        Shape::IntOrString if parts.first_number == 0 => (parts.second_number as i32).into(),
        Shape::IntOrString => text(parts.third).into(),
        Shape::Quantity => match text(parts.first) {
            empty if empty.is_empty() => "0".into(),
            quantity => quantity.into(),
        },
        Shape::Time | Shape::MicroTime if bytes.is_empty() => Value::Null,
        Shape::Time => time::seconds(parts.first_number as i64)?.into(),
        Shape::MicroTime => {
            let (seconds, nanos) = (parts.first_number as i64, parts.second_number as i32);
            time::micros(seconds, nanos)?.into()
        }
        Shape::Duration => duration::format(parts.first_number as i64).into(),
        Shape::RawExtension => match parts.first {
            Some(raw) if raw.starts_with(&envelope::MAGIC) => {
                envelope::nested(decoder, raw, depth + 1)?
            }
            raw => json(decoder, raw, depth)?,
        },
        Shape::Json => json(decoder, parts.first, depth)?,
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts => {
            schema_or(decoder, message, &parts, depth)?
        }
    })
}

impl<'a> Parts<'a> {
    fn read(decoder: &mut Decoder, bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut parts = Self::default();
        let mut fields = Fields::new(bytes);
        while let Some((number, content)) = fields.next()? {
            match (number, content) {
                (1, Content::Varint(value)) => parts.first_number = value,
                (2, Content::Varint(value)) => parts.second_number = value,
                (1, Content::Bytes(value)) => {
                    decoder.charge()?;
                    parts.first = Some(value);
                    parts.firsts.push(value);
                }
                (2, Content::Bytes(value)) => {
                    decoder.charge()?;
                    parts.seconds.push(value);
                }
                (3, Content::Bytes(value)) => parts.third = Some(value),
                _ => {}
            }
        }
        Ok(parts)
    }
}

/// A schema, or what stands in its place.
fn schema_or(
    decoder: &mut Decoder,
    message: &Message,
    parts: &Parts<'_>,
    depth: usize,
) -> Result<Value, WireError> {
    let schemas = message.fields.iter().find_map(|field| match field.kind {
        Type::Message(id) => Some(id.message()),
        _ => None,
    });
    let Some(schema) = schemas else {
        return Ok(Value::Null);
    };
    let last = |list: &[&'_ [u8]]| list.last().map(|bytes| bytes.to_vec());
    let one = match message.shape {
        Shape::SchemaOrBool => last(&parts.seconds),
        _ => last(&parts.firsts),
    };
    // Go prefers the list of schemas, but the one schema to a list of texts.
    match (message.shape, one) {
        (Shape::SchemaOrArray, _) if !parts.seconds.is_empty() => {
            let mut list = Vec::new();
            for bytes in &parts.seconds {
                list.push(decoder.message(schema, bytes, depth + 1)?);
            }
            Ok(list.into())
        }
        (Shape::SchemaOrTexts, _) if !parts.seconds.is_empty() => {
            let texts = parts.seconds.iter();
            Ok(texts.map(|text| String::from_utf8_lossy(text)).collect())
        }
        (_, Some(bytes)) => decoder.message(schema, &bytes, depth),
        (Shape::SchemaOrBool, None) => Ok((parts.first_number != 0).into()),
        (_, None) => Ok(Value::Null),
    }
}

/// The JSON that bytes hold.
fn json(decoder: &mut Decoder, raw: Option<&[u8]>, depth: usize) -> Result<Value, WireError> {
    let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
        return Ok(Value::Null);
    };
    let value: Value =
        serde_json::from_slice(raw).map_err(|error| WireError::Json(error.to_string()))?;
    check(decoder, &value, depth)?;
    Ok(value)
}

/// Counts the values, and how deep they are.
fn check(decoder: &mut Decoder, value: &Value, depth: usize) -> Result<(), WireError> {
    if depth >= NESTING_MAX {
        return Err(WireError::TooDeep);
    }
    decoder.charge()?;
    match value {
        Value::Array(list) => list.iter().try_for_each(|it| check(decoder, it, depth + 1)),
        Value::Object(map) => map
            .values()
            .try_for_each(|it| check(decoder, it, depth + 1)),
        _ => Ok(()),
    }
}
