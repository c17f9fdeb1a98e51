//! Protobuf messages to the JSON that Go would write for them, in one pass over their bytes.
//!
//! Go writes fields in the order of their numbers, each field once, and the entries of maps in the order of their keys.
//! So JSON can be written while the bytes are read, and the fields that are absent between two others are known when
//! the second one comes. The hard part is the bytes of other writers, which may have fields in any order and several
//! times: this is detected here, the message is put in order once (`field_order`), and read again.
//!
//! ```text
//! wire   3:namespace        8:creationTimestamp   11:labels 11:labels
//! JSON   "namespace":"b",   "creationTimestamp":...  "labels":{"a":"b","c":"d"}
//!                        ^ what fields 4 to 7 are when they are absent
//! ```

mod custom;

use super::error::WireError;
use super::field_order;
use super::json_string;
use super::message::{Arity, Field, FieldType, KEY_BYTES, Message, Shape};
use super::output::Output;
use super::wire::{self, Fields, NESTING_MAX, entry_of};

/// Writes an object of a kind as JSON, its kind and version first.
///
/// # Errors
/// [`WireError`] when the bytes are broken or exceed the limits.
pub(super) fn object(
    message: &Message,
    bytes: &[u8],
    api_version: &str,
    kind: &str,
) -> Result<Vec<u8>, WireError> {
    let attempt = |bytes: &[u8]| {
        let mut transcoder = Transcoder {
            out: Output::new(bytes.len()),
        };
        transcoder.typed(message, bytes, api_version, kind, 0)?;
        transcoder.out.finish()
    };
    match attempt(bytes) {
        // Other errors too are those of the ordered message: a value that cannot be JSON is no error if a later one
        // replaces it, whether it stood before or behind the first field out of order.
        Err(_) => attempt(&field_order::ordered(message, bytes, 0)?),
        done => done,
    }
}

/// The state of writing one object.
#[derive(Debug)]
pub(super) struct Transcoder {
    pub(super) out: Output,
}

impl Transcoder {
    /// Writes an object with its kind and version.
    pub(super) fn typed(
        &mut self,
        message: &Message,
        bytes: &[u8],
        api_version: &str,
        kind: &str,
        depth: usize,
    ) -> Result<(), WireError> {
        self.out.put(b"{\"kind\":");
        json_string::put(&mut self.out, kind.as_bytes());
        self.out.put(b",\"apiVersion\":");
        json_string::put(&mut self.out, api_version.as_bytes());
        self.out.push(b',');
        self.members(message, bytes, depth)?;
        self.out.close(b'}');
        Ok(())
    }

    /// Writes a message.
    #[inline(always)]
    pub(super) fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), WireError> {
        if message.shape != Shape::Object {
            return custom::write(self, message, bytes, depth);
        }
        self.out.push(b'{');
        self.members(message, bytes, depth)?;
        self.out.close(b'}');
        Ok(())
    }

    /// Writes the fields of a message, with a comma after each.
    fn members(&mut self, message: &Message, bytes: &[u8], depth: usize) -> Result<(), WireError> {
        if depth >= NESTING_MAX {
            return Err(WireError::TooDeep);
        }
        self.out.check()?;
        let (mut written, mut required) = (0, message.first_required);
        let mut fields = Fields::new(bytes);
        while !fields.is_empty() {
            let tag = fields.varint()?;
            let Some(place) = message.place(tag >> 3) else {
                fields.skip(tag)?;
                continue;
            };
            if place < written {
                return Err(WireError::OutOfOrder);
            }
            let field = &message.fields[place];
            if required < place {
                self.absent(&message.fields[required..place]);
            }
            (written, required) = (place + 1, field.next_required.into());
            match field.arity {
                Arity::One => self.one(field, tag, &mut fields, depth)?,
                Arity::List => self.list(field, tag, &mut fields, depth)?,
                Arity::Map => self.map(field, tag, &mut fields, depth)?,
            }
        }
        self.absent(message.fields.get(required..).unwrap_or_default());
        Ok(())
    }

    /// Begins a member: writes its name and a colon.
    #[inline(always)]
    fn begin(&mut self, field: &Field) {
        let length = usize::from(field.key_length);
        if length > KEY_BYTES || !self.out.put_part(&field.key_start, length) {
            self.out.put(&field.key);
        }
    }

    /// Writes the members of absent fields.
    fn absent(&mut self, fields: &[Field]) {
        for field in fields {
            self.out.put(&field.absent);
        }
    }

    #[inline(always)]
    fn one(
        &mut self,
        field: &Field,
        tag: u64,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        if tag != u64::from(field.tag) {
            return Err(field.wrong_tag(tag));
        }
        if field.skips_zero && fields.skip_zero() {
            return Ok(());
        }
        if let (true, FieldType::Message(id)) = (field.inline, field.kind) {
            return self.members(id.message(), fields.run()?, depth + 1);
        }
        let start = self.out.len();
        self.begin(field);
        let value_at = self.out.len();
        self.value(field.kind, fields, depth + 1)?;
        if field.may_vanish && field.vanishes(self.out.since(value_at)) {
            self.out.truncate(start);
        } else {
            self.out.push(b',');
        }
        Ok(())
    }

    /// Writes a list whose first tag has been read.
    #[inline(never)]
    fn list(
        &mut self,
        field: &Field,
        tag: u64,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        let start = self.out.len();
        self.begin(field);
        self.out.push(b'[');
        let items_at = self.out.len();
        let mut next = Some(tag);
        while let Some(tag) = next {
            if tag == u64::from(field.tag) {
                match field.kind {
                    FieldType::Message(id) if field.tells_kind => {
                        let message = id.message();
                        let version = message.api_version;
                        self.typed(message, fields.run()?, version, message.name, depth + 2)?;
                    }
                    kind => self.value(kind, fields, depth + 2)?,
                }
                self.out.push(b',');
            } else if field.wire_type == 0 && tag == u64::from(field.tag | 2) {
                let mut packed = Fields::new(fields.run()?);
                while !packed.is_empty() {
                    self.value(field.kind, &mut packed, depth + 2)?;
                    self.out.push(b',');
                }
            } else {
                return Err(field.wrong_tag(tag));
            }
            next = fields.tag_of(field.number)?;
        }
        if self.out.len() == items_at {
            // Numbers that were packed into no bytes are no list.
            self.out.truncate(start);
            self.out.put(&field.absent);
        } else {
            self.out.close(b']');
            self.out.push(b',');
        }
        Ok(())
    }

    /// Writes a map whose first tag has been read.
    #[inline(never)]
    fn map(
        &mut self,
        field: &Field,
        tag: u64,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        self.begin(field);
        self.out.push(b'{');
        let mut last_key = None;
        let mut next = Some(tag);
        while let Some(tag) = next {
            if tag != u64::from(field.tag) {
                return Err(field.wrong_tag(tag));
            }
            let (key, value) = entry_of(fields.run()?)?;
            if last_key.is_some_and(|last| last >= key) {
                return Err(WireError::OutOfOrder);
            }
            last_key = Some(key);
            json_string::put(&mut self.out, key);
            self.out.push(b':');
            match value {
                Some(mut value) => self.value(field.kind, &mut value, depth + 2)?,
                None => self.empty(field.kind, depth + 2)?,
            }
            self.out.push(b',');
            next = fields.tag_of(field.number)?;
        }
        self.out.close(b'}');
        self.out.push(b',');
        Ok(())
    }

    /// Writes one value, whose tag has been read.
    #[inline(always)]
    fn value(
        &mut self,
        kind: FieldType,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        match kind {
            FieldType::Text => json_string::put(&mut self.out, fields.run()?),
            FieldType::Bytes => self.out.base64(fields.run()?),
            FieldType::Bool => self.out.put(if fields.varint()? == 0 {
                b"false"
            } else {
                b"true"
            }),
            FieldType::Int32 => self.out.whole(i64::from(fields.varint()? as i32)),
            FieldType::Int64 => self.out.whole(fields.varint()? as i64),
            FieldType::Double => self.out.double(fields.double()?)?,
            FieldType::Message(id) => self.message(id.message(), fields.run()?, depth)?,
        }
        Ok(())
    }

    /// Writes the value of a map's entry that has none.
    fn empty(&mut self, kind: FieldType, depth: usize) -> Result<(), WireError> {
        match kind {
            FieldType::Text | FieldType::Bytes => self.out.put(b"\"\""),
            FieldType::Bool => self.out.put(b"false"),
            FieldType::Int32 | FieldType::Int64 | FieldType::Double => self.out.push(b'0'),
            FieldType::Message(id) => self.message(id.message(), &[], depth)?,
        }
        Ok(())
    }
}

impl Field {
    /// Returns true if JSON omits a value.
    fn vanishes(&self, value: &[u8]) -> bool {
        match value {
            b"null" => self.omit_zero,
            b"\"\"" | b"0" | b"-0" | b"false" | b"[]" => self.omit_empty,
            _ => false,
        }
    }

    /// Returns the error about a tag with the field's number and another wire type.
    #[cold]
    pub(super) fn wrong_tag(&self, tag: u64) -> WireError {
        match wire::tag_parts(tag) {
            Ok((_, wire_type)) => self.wrong_type(wire_type),
            Err(error) => error,
        }
    }

    /// Returns the error about a wire type that the field cannot have.
    pub(super) fn wrong_type(&self, wire_type: u8) -> WireError {
        WireError::WrongType {
            wire_type,
            field: self.name,
        }
    }
}
