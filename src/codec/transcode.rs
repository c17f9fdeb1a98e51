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
use super::wire::{Content, Fields, varint};

/// How deep lists, maps and messages may be nested; JSON that is nested deeper cannot be read back.
pub(super) const NESTING_MAX: usize = 100;

/// A field of the wire, if there is one more.
type Next<'a> = Option<(u32, Content<'a>)>;

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
        let mut fields = Fields::new(bytes);
        let mut next = fields.next()?;
        while let Some((number, content)) = next {
            let Some(place) = message.place(number) else {
                next = fields.next()?;
                continue;
            };
            let absent = message.fields.get(written..place);
            self.absent(absent.ok_or(WireError::OutOfOrder)?);
            written = place + 1;
            let field = &message.fields[place];
            next = match field.arity {
                Arity::One => {
                    self.one(field, content, depth)?;
                    fields.next()?
                }
                Arity::List => self.list(field, content, &mut fields, depth)?,
                Arity::Map => self.map(field, content, &mut fields, depth)?,
            };
        }
        self.absent(&message.fields[written..]);
        Ok(())
    }

    fn absent(&mut self, fields: &[Field]) {
        for field in fields {
            self.out.put(&field.absent);
        }
    }

    fn one(&mut self, field: &Field, content: Content<'_>, depth: usize) -> Result<(), WireError> {
        if let (true, Type::Message(id), Content::Bytes(bytes)) =
            (field.inline, field.kind, content)
        {
            return self.members(id.message(), bytes, depth + 1);
        }
        let start = self.out.len();
        self.out.put(&field.key);
        let value_at = self.out.len();
        self.value(field, content, depth + 1)?;
        if field.may_vanish && field.vanishes(self.out.since(value_at)) {
            self.out.truncate(start);
        } else {
            self.out.push(b',');
        }
        Ok(())
    }

    /// Writes a list, all of whose items come one after the other.
    fn list<'a>(
        &mut self,
        field: &Field,
        first: Content<'a>,
        fields: &mut Fields<'a>,
        depth: usize,
    ) -> Result<Next<'a>, WireError> {
        let start = self.out.len();
        self.out.put(&field.key);
        self.out.push(b'[');
        let items_at = self.out.len();
        let mut next = Some((field.number, first));
        while let Some((_, content)) = next.filter(|it| it.0 == field.number) {
            match (field.kind, content) {
                (Type::Int32 | Type::Int64, Content::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let number = Content::Varint(varint(&mut packed)?);
                        self.value(field, number, depth + 2)?;
                        self.out.push(b',');
                    }
                }
                _ => {
                    self.value(field, content, depth + 2)?;
                    self.out.push(b',');
                }
            }
            next = fields.next()?;
        }
        if self.out.len() == items_at {
            // Numbers that were packed into no bytes are no list.
            self.out.truncate(start);
            self.out.put(&field.absent);
        } else {
            self.out.close(b']');
            self.out.push(b',');
        }
        Ok(next)
    }

    /// Writes a map, all of whose entries come one after the other.
    fn map<'a>(
        &mut self,
        field: &Field,
        first: Content<'a>,
        fields: &mut Fields<'a>,
        depth: usize,
    ) -> Result<Next<'a>, WireError> {
        self.out.put(&field.key);
        self.out.push(b'{');
        let mut last: Option<&[u8]> = None;
        let mut next = Some((field.number, first));
        while let Some((_, content)) = next.filter(|it| it.0 == field.number) {
            let Content::Bytes(entry) = content else {
                return Err(field.wrong_type(content));
            };
            let (key, value) = entry_of(entry)?;
            if last.is_some_and(|last| last >= key) {
                return Err(WireError::OutOfOrder);
            }
            last = Some(key);
            text::put(&mut self.out, key);
            self.out.push(b':');
            match value {
                Some(value) => self.value(field, value, depth + 2)?,
                None => self.empty(field.kind, depth + 2)?,
            }
            self.out.push(b',');
            next = fields.next()?;
        }
        self.out.close(b'}');
        self.out.push(b',');
        Ok(next)
    }

    /// Writes one value.
    #[inline]
    fn value(
        &mut self,
        field: &Field,
        content: Content<'_>,
        depth: usize,
    ) -> Result<(), WireError> {
        match (field.kind, content) {
            (Type::Text, Content::Bytes(text)) => text::put(&mut self.out, text),
            (Type::Bytes, Content::Bytes(bytes)) => self.out.base64(bytes),
            (Type::Bool, Content::Varint(0)) => self.out.put(b"false"),
            (Type::Bool, Content::Varint(_)) => self.out.put(b"true"),
            (Type::Int32, Content::Varint(number)) => self.out.whole(i64::from(number as i32)),
            (Type::Int64, Content::Varint(number)) => self.out.whole(number as i64),
            (Type::Double, Content::Fixed64(bits)) => self.out.double(f64::from_bits(bits))?,
            (Type::Message(id), Content::Bytes(bytes)) => {
                self.message(id.message(), bytes, depth)?;
            }
            _ => return Err(field.wrong_type(content)),
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

/// The key and the value of a map's entry.
///
/// # Errors
/// [`WireError`] when it is broken.
pub(super) fn entry_of(entry: &[u8]) -> Result<(&[u8], Option<Content<'_>>), WireError> {
    let (mut key, mut value) = (&[][..], None);
    let mut fields = Fields::new(entry);
    while let Some((number, content)) = fields.next()? {
        match (number, content) {
            (1, Content::Bytes(text)) => key = text,
            (2, content) => value = Some(content),
            _ => {}
        }
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

    /// What to say about a content that the field cannot have.
    pub(super) fn wrong_type(&self, content: Content<'_>) -> WireError {
        WireError::WrongType {
            wire_type: content.wire_type(),
            field: self.name,
        }
    }
}
