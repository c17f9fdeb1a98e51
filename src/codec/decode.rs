//! A message to the JSON that Go would write for it.
//!
//! The hard part is what is not there: Go's JSON has every field that is neither empty and marked to
//! be left out nor an absent pointer, so that a message is completed after its bytes are read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::error::WireError;
use super::special;
use super::tables::{Arity, Field, Message, Shape, Type};
use super::wire::{Content, Fields, varint};

/// How deep lists, maps and messages may be nested; JSON that is nested deeper cannot be read back.
pub(super) const NESTING_MAX: usize = 100;

/// How many values any message may have.
const VALUES_MIN: usize = 4096;

/// How many bytes a value needs beyond those, so that bytes cannot grow without bounds as a tree.
const VALUE_BYTES_MIN: usize = 2;

/// Reads one body.
#[derive(Debug)]
pub(super) struct Decoder {
    /// How many values may still be made.
    values_left: usize,
}

impl Decoder {
    /// A decoder of a body of this size.
    pub(super) fn new(body_bytes: usize) -> Self {
        Self {
            values_left: VALUES_MIN + body_bytes / VALUE_BYTES_MIN,
        }
    }

    /// Reads a message at a depth of nesting.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are broken or beyond the bounds.
    pub(super) fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, WireError> {
        if message.shape != Shape::Object {
            return special::read(self, message, bytes, depth);
        }
        let mut members = Map::new();
        self.fields(message, bytes, depth, &mut members)?;
        self.complete(message, &mut members)?;
        Ok(Value::Object(members))
    }

    /// Reads the fields of a message into the members of an object.
    fn fields(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
        members: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        if depth >= NESTING_MAX {
            return Err(WireError::TooDeep);
        }
        let mut fields = Fields::new(bytes);
        while let Some((number, content)) = fields.next()? {
            if let Some(field) = message.field(number) {
                self.field(field, content, depth, members)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        content: Content<'_>,
        depth: usize,
        members: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        self.charge()?;
        match (field.arity, field.kind, content) {
            (Arity::Map, kind, Content::Bytes(entry)) => {
                let (key, value) = self.entry(field, kind, entry, depth + 2)?;
                let map = members
                    .entry(field.name)
                    .or_insert_with(|| Map::new().into());
                if let Value::Object(map) = map {
                    map.insert(key, value);
                }
            }
            (Arity::List, Type::Int32 | Type::Int64, Content::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    let number = Content::Varint(varint(&mut packed)?);
                    self.charge()?;
                    let value = self.value(field, field.kind, number, depth + 2)?;
                    push(members, field.name, value);
                }
            }
            (Arity::List, kind, content) => {
                let value = self.value(field, kind, content, depth + 2)?;
                push(members, field.name, value);
            }
            (Arity::One, Type::Message(id), Content::Bytes(bytes)) if field.inline => {
                self.fields(id.message(), bytes, depth + 1, members)?;
            }
            (Arity::One, Type::Message(id), Content::Bytes(bytes))
                if id.message().shape == Shape::Object =>
            {
                // A field that comes twice is one message in two parts.
                let message = id.message();
                let mut part = match members.remove(field.name) {
                    Some(Value::Object(part)) => part,
                    _ => Map::new(),
                };
                self.fields(message, bytes, depth + 1, &mut part)?;
                self.complete(message, &mut part)?;
                members.insert(field.name.to_owned(), Value::Object(part));
            }
            (_, kind, content) => {
                let value = self.value(field, kind, content, depth + 1)?;
                members.insert(field.name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// Reads one value.
    fn value(
        &mut self,
        field: &Field,
        kind: Type,
        content: Content<'_>,
        depth: usize,
    ) -> Result<Value, WireError> {
        Ok(match (kind, content) {
            (Type::Text, Content::Bytes(text)) => String::from_utf8_lossy(text).into(),
            (Type::Bytes, Content::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Type::Bool, Content::Varint(number)) => (number != 0).into(),
            (Type::Int32, Content::Varint(number)) => (number as i32).into(),
            (Type::Int64, Content::Varint(number)) => (number as i64).into(),
            (Type::Double, Content::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Type::Message(id), Content::Bytes(bytes)) => {
                self.message(id.message(), bytes, depth)?
            }
            _ => {
                return Err(WireError::WrongType {
                    wire_type: content.wire_type(),
                    field: field.name,
                });
            }
        })
    }

    /// Reads an entry of a map. A key or value that is left out is the empty one.
    fn entry(
        &mut self,
        field: &Field,
        kind: Type,
        entry: &[u8],
        depth: usize,
    ) -> Result<(String, Value), WireError> {
        let (mut key, mut value) = (String::new(), None);
        let mut fields = Fields::new(entry);
        while let Some((number, content)) = fields.next()? {
            match (number, content) {
                (1, Content::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                (2, content) => value = Some(self.value(field, kind, content, depth)?),
                _ => {}
            }
        }
        let value = match (value, kind) {
            (Some(value), _) => value,
            (None, Type::Message(id)) => self.message(id.message(), &[], depth)?,
            (None, kind) => empty(kind),
        };
        Ok((key, value))
    }

    /// Adds the members that Go writes though the wire does not have them, and removes those that
    /// Go leaves out.
    fn complete(
        &mut self,
        message: &Message,
        members: &mut Map<String, Value>,
    ) -> Result<(), WireError> {
        for field in &message.fields {
            let nested = match (field.arity, field.kind) {
                (Arity::One, Type::Message(id)) => Some(id.message()),
                _ => None,
            };
            if let (true, Some(inline)) = (field.inline, nested) {
                self.complete(inline, members)?;
                continue;
            }
            let present = members.get(field.name);
            if field.pointer || field.arity != Arity::One {
                if present.is_none() && !field.omit_empty {
                    members.insert(field.name.to_owned(), Value::Null);
                }
                continue;
            }
            let is_struct = nested.is_some_and(|it| it.shape != Shape::Items);
            if let Some(value) = present {
                let dropped = field.omit_empty && !is_struct && is_empty(value)
                    || field.omit_zero && value.is_null();
                if dropped {
                    members.remove(field.name);
                }
                continue;
            }
            if field.omit_zero || field.omit_empty && !is_struct {
                continue;
            }
            self.charge()?;
            let value = match nested {
                Some(message) if is_struct => self.message(message, &[], 0)?,
                Some(_) => Value::Null,
                None if field.kind == Type::Bytes => Value::Null,
                None => empty(field.kind),
            };
            members.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// Counts a value.
    ///
    /// # Errors
    /// [`WireError::TooMany`] when there were too many.
    pub(super) fn charge(&mut self) -> Result<(), WireError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(WireError::TooMany)?;
        Ok(())
    }
}

/// Appends to a list.
fn push(members: &mut Map<String, Value>, name: &str, value: Value) {
    match members.get_mut(name) {
        Some(Value::Array(list)) => list.push(value),
        _ => {
            members.insert(name.to_owned(), vec![value].into());
        }
    }
}

/// Go writes whole numbers without a point.
fn double(number: f64) -> Value {
    let whole = number as i64;
    if whole as f64 == number {
        whole.into()
    } else {
        number.into()
    }
}

/// Whether JSON leaves the value out if it is marked so.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::Object(_) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
    }
}

/// The empty value.
fn empty(kind: Type) -> Value {
    match kind {
        Type::Text | Type::Bytes => "".into(),
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::Message(_) => Value::Null,
    }
}
