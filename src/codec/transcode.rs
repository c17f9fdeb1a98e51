//! A message to the JSON that Go would write for it, in one pass over its bytes.
//!
//! Go writes fields in the order of their numbers, each field once, the keys of maps in their order.
//! So JSON can be written while the bytes are read, and what is absent between two fields is known
//! when the second one comes. The hard part is the bytes that others write, which may have fields in
//! any order and several times: they are noticed here, put in order once (`order`), and read again.
//!
//! ```text
//! wire   3:namespace        8:creationTimestamp   11:labels 11:labels
//! JSON   "namespace":"b",   "creationTimestamp":...  "labels":{"a":"b","c":"d"}
//!                        ^ what fields 4 to 7 are when they are absent
//! ```

use super::error::WireError;
use super::order;
use super::output::Output;
use super::special;
use super::tables::{Arity, Field, Message, Shape, Type};
use super::text;
use super::wire::Fields;

/// How deep lists, maps and messages may be nested; JSON that is nested deeper cannot be read back.
pub(super) const NESTING_MAX: usize = 100;

/// A map's entry: its key, and the wire type of its value with what follows it.
type Entry<'a> = (&'a [u8], Option<(u8, Fields<'a>)>);

/// A list or a map that is being written.
struct Several<'a> {
    /// Which field it is.
    place: usize,
    /// Where it begins in the output.
    start: usize,
    /// The key of its last entry.
    last_key: Option<&'a [u8]>,
}

/// Writes an object of a kind as JSON, its kind and version first.
///
/// # Errors
/// [`WireError`] when the bytes are broken or beyond the bounds.
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
        Err(WireError::OutOfOrder) => attempt(&order::ordered(message, bytes, 0)?),
        done => done,
    }
}

/// Writes one body.
#[derive(Debug)]
pub(super) struct Transcoder {
    pub(super) out: Output,
}

impl Transcoder {
    /// Writes an object that tells its kind and version.
    pub(super) fn typed(
        &mut self,
        message: &Message,
        bytes: &[u8],
        api_version: &str,
        kind: &str,
        depth: usize,
    ) -> Result<(), WireError> {
        self.out.put(b"{\"kind\":");
        text::put(&mut self.out, kind.as_bytes());
        self.out.put(b",\"apiVersion\":");
        text::put(&mut self.out, api_version.as_bytes());
        self.out.push(b',');
        self.members(message, bytes, depth)?;
        self.out.close(b'}');
        Ok(())
    }

    /// Writes a message.
    pub(super) fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), WireError> {
        if message.shape != Shape::Object {
            return special::write(self, message, bytes, depth);
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
        let mut written = 0;
        let mut open = None;
        let mut fields = Fields::new(bytes);
        while !fields.is_empty() {
            let (number, wire_type) = fields.tag()?;
            let Some(place) = message.place(number) else {
                fields.content(wire_type)?;
                continue;
            };
            let field = &message.fields[place];
            if let Some(several) = open
                .as_mut()
                .filter(|it: &&mut Several<'_>| it.place == place)
            {
                self.one_more(field, several, wire_type, &mut fields, depth)?;
                continue;
            }
            if place < written {
                return Err(WireError::OutOfOrder);
            }
            if let Some(several) = open.take() {
                self.close(&message.fields[several.place], &several);
            }
            for field in message.required(written, place) {
                self.out.put(&field.absent);
            }
            written = place + 1;
            if field.arity == Arity::One {
                self.one(field, wire_type, &mut fields, depth)?;
                continue;
            }
            let several = open.insert(Several {
                place,
                start: self.out.len(),
                last_key: None,
            });
            self.out.put(&field.key);
            self.out.push(if field.arity == Arity::List {
                b'['
            } else {
                b'{'
            });
            self.one_more(field, several, wire_type, &mut fields, depth)?;
        }
        if let Some(several) = open {
            self.close(&message.fields[several.place], &several);
        }
        for field in message.required(written, message.fields.len()) {
            self.out.put(&field.absent);
        }
        Ok(())
    }

    #[inline]
    fn one(
        &mut self,
        field: &Field,
        wire_type: u8,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        let is_double = field.kind == Type::Double;
        if field.may_vanish && wire_type == field.wire_type && !is_double && fields.skip_zero() {
            return Ok(());
        }
        if let (true, Type::Message(id), 2) = (field.inline, field.kind, wire_type) {
            return self.members(id.message(), fields.run()?, depth + 1);
        }
        let start = self.out.len();
        self.out.put(&field.key);
        let value_at = self.out.len();
        self.value(field, wire_type, fields, depth + 1)?;
        if field.may_vanish && field.vanishes(self.out.since(value_at)) {
            self.out.truncate(start);
        } else {
            self.out.push(b',');
        }
        Ok(())
    }

    /// Writes an item of a list, or an entry of a map.
    fn one_more<'a>(
        &mut self,
        field: &Field,
        several: &mut Several<'a>,
        wire_type: u8,
        fields: &mut Fields<'a>,
        depth: usize,
    ) -> Result<(), WireError> {
        if field.arity == Arity::Map {
            return self.entry(field, several, wire_type, fields, depth);
        }
        if wire_type == 2 && field.wire_type == 0 {
            let mut packed = Fields::new(fields.run()?);
            while !packed.is_empty() {
                self.value(field, field.wire_type, &mut packed, depth + 2)?;
                self.out.push(b',');
            }
            return Ok(());
        }
        self.value(field, wire_type, fields, depth + 2)?;
        self.out.push(b',');
        Ok(())
    }

    fn entry<'a>(
        &mut self,
        field: &Field,
        several: &mut Several<'a>,
        wire_type: u8,
        fields: &mut Fields<'a>,
        depth: usize,
    ) -> Result<(), WireError> {
        if wire_type != 2 {
            return Err(field.wrong_type(wire_type));
        }
        let (key, value) = entry_of(fields.run()?)?;
        if several.last_key.is_some_and(|last| last >= key) {
            return Err(WireError::OutOfOrder);
        }
        several.last_key = Some(key);
        text::put(&mut self.out, key);
        self.out.push(b':');
        match value {
            Some((wire_type, mut value)) => self.value(field, wire_type, &mut value, depth + 2)?,
            None => self.empty(field.kind, depth + 2)?,
        }
        self.out.push(b',');
        Ok(())
    }

    /// Ends a list or a map.
    fn close(&mut self, field: &Field, several: &Several<'_>) {
        if field.arity == Arity::Map {
            self.out.close(b'}');
        } else if self.out.len() == several.start + field.key.len() + 1 {
            // Numbers that were packed into no bytes are no list.
            self.out.truncate(several.start);
            self.out.put(&field.absent);
            return;
        } else {
            self.out.close(b']');
        }
        self.out.push(b',');
    }

    /// Writes one value, whose tag has been read.
    #[inline]
    fn value(
        &mut self,
        field: &Field,
        wire_type: u8,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        if wire_type != field.wire_type {
            return Err(field.wrong_type(wire_type));
        }
        match field.kind {
            Type::Text => text::put(&mut self.out, fields.run()?),
            Type::Bytes => self.out.base64(fields.run()?),
            Type::Bool => self.out.put(if fields.varint()? == 0 {
                b"false"
            } else {
                b"true"
            }),
            Type::Int32 => self.out.whole(i64::from(fields.varint()? as i32)),
            Type::Int64 => self.out.whole(fields.varint()? as i64),
            Type::Double => self.out.double(fields.double()?)?,
            Type::Message(id) => self.message(id.message(), fields.run()?, depth)?,
        }
        Ok(())
    }

    /// Writes the value of a map's entry that has none.
    fn empty(&mut self, kind: Type, depth: usize) -> Result<(), WireError> {
        match kind {
            Type::Text | Type::Bytes => self.out.put(b"\"\""),
            Type::Bool => self.out.put(b"false"),
            Type::Int32 | Type::Int64 | Type::Double => self.out.push(b'0'),
            Type::Message(id) => self.message(id.message(), &[], depth)?,
        }
        Ok(())
    }
}

/// The key and the value of a map's entry: the value's wire type and where it is read from.
///
/// # Errors
/// [`WireError`] when it is broken.
pub(super) fn entry_of(entry: &[u8]) -> Result<Entry<'_>, WireError> {
    let (mut key, mut value) = (&[][..], None);
    let mut fields = Fields::new(entry);
    while !fields.is_empty() {
        let (number, wire_type) = fields.tag()?;
        if (number, wire_type) == (1, 2) {
            key = fields.run()?;
            continue;
        }
        if number == 2 {
            value = Some((wire_type, fields));
        }
        fields.content(wire_type)?;
    }
    Ok((key, value))
}

impl Field {
    /// Whether JSON leaves out a value.
    fn vanishes(&self, value: &[u8]) -> bool {
        match value {
            b"null" => self.omit_zero,
            b"\"\"" | b"0" | b"-0" | b"false" | b"[]" => self.omit_empty,
            _ => false,
        }
    }

    /// What to say about a wire type that the field cannot have.
    pub(super) fn wrong_type(&self, wire_type: u8) -> WireError {
        WireError::WrongType {
            wire_type,
            field: self.name,
        }
    }
}
