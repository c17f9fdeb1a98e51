//! Protobuf's wire format: fields with a number, each a varint, a fixed-size number or bytes.
//!
//! [`Fields`] reads the fields of a message in order and [`put_number`] and [`put_bytes`] append fields, without any
//! knowledge of the message's type. Nothing is copied; only the nesting of groups is bounded.

use super::error::{Broken, WireError};

/// The depth to which groups may be nested; Kubernetes sends none.
const GROUP_DEPTH_MAX: usize = 16;

/// The depth to which lists, maps and messages may be nested; JSON that is nested deeper cannot be decoded again.
pub(super) const NESTING_MAX: usize = 100;

/// A field's content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// A varint: wire type 0.
    Varint(u64),
    /// A number of 64 bits: wire type 1.
    Fixed64(u64),
    /// Bytes: wire type 2.
    Bytes(&'a [u8]),
    /// A group, which was skipped up to its end: wire type 3.
    Group,
    /// A number of 32 bits, which was skipped: wire type 5.
    Fixed32,
}

/// A reader of the fields of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

/// A map's entry: its key, and the reader at its value. All values are texts, bytes or messages.
type MapEntry<'a> = (&'a [u8], Option<Fields<'a>>);

impl Content<'_> {
    /// Returns the number of the wire type.
    pub(super) fn wire_type(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32 => 5,
        }
    }
}

impl<'a> Fields<'a> {
    /// Creates a reader of the fields of a message.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// Returns how many bytes of the message have not been read.
    pub(super) fn bytes_left(&self) -> usize {
        self.0.len()
    }

    /// Returns the next field's number and content; `None` at the end.
    ///
    /// # Errors
    /// [`WireError`] when the bytes end within a field or break the rules.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, Content<'a>)>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        Ok(Some((number, self.content(wire_type)?)))
    }

    /// Returns the next field's number and wire type, if there is one; its content must be read next.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[inline(always)]
    pub(super) fn tag(&mut self) -> Result<(u32, u8), WireError> {
        tag_parts(self.varint()?)
    }

    /// Returns the next field's whole tag if it has this number; otherwise nothing is read.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[inline]
    pub(super) fn tag_of(&mut self, number: u32) -> Result<Option<u64>, Broken> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut rest = *self;
        let tag = rest.varint()?;
        if tag >> 3 != u64::from(number) {
            return Ok(None);
        }
        *self = rest;
        Ok(Some(tag))
    }

    /// Skips the content that follows a whole tag.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[cold]
    pub(super) fn skip(&mut self, tag: u64) -> Result<(), WireError> {
        let (_, wire_type) = tag_parts(tag)?;
        self.content(wire_type)?;
        Ok(())
    }

    /// Returns the content that follows a tag.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[inline]
    pub(super) fn content(&mut self, wire_type: u8) -> Result<Content<'a>, WireError> {
        Ok(match wire_type {
            0 => Content::Varint(self.varint()?),
            1 => {
                let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| Broken::Truncated)?;
                Content::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => Content::Bytes(self.run()?),
            3 => {
                self.skip_group()?;
                Content::Group
            }
            5 => {
                self.take(4)?;
                Content::Fixed32
            }
            _ => return Err(WireError::UnexpectedEndOfGroup),
        })
    }

    /// Returns true if there are no more fields.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Skips a content that is a single zero: the number, or no bytes.
    #[inline(always)]
    pub(super) fn skip_zero(&mut self) -> bool {
        let is_zero = self.0.first() == Some(&0);
        if is_zero {
            self.0 = &self.0[1..];
        }
        is_zero
    }

    /// Returns the number that follows a tag of wire type 1.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    pub(super) fn double(&mut self) -> Result<f64, Broken> {
        let bytes = self.take(8)?.try_into().map_err(|_| Broken::Truncated)?;
        Ok(f64::from_le_bytes(bytes))
    }

    /// Returns the number that follows a tag of wire type 0.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64, Broken> {
        varint(&mut self.0)
    }

    /// Returns the bytes that follow a tag of wire type 2.
    ///
    /// # Errors
    /// As [`Self::next_field`].
    #[inline(always)]
    pub(super) fn run(&mut self) -> Result<&'a [u8], Broken> {
        let length = varint(&mut self.0)?;
        let length = i64::try_from(length).map_err(|_| Broken::NegativeLength)?;
        self.take(usize::try_from(length).map_err(|_| Broken::Truncated)?)
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Broken::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip_group(&mut self) -> Result<(), WireError> {
        let mut depth = 1;
        while depth > 0 {
            match self.tag()?.1 {
                0 => {
                    varint(&mut self.0)?;
                }
                1 => {
                    self.take(8)?;
                }
                2 => {
                    self.run()?;
                }
                3 if depth == GROUP_DEPTH_MAX => return Err(WireError::TooDeep),
                3 => depth += 1,
                4 => depth -= 1,
                _ => {
                    self.take(4)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the key and the value of a map's entry. Go does not look at the wire types of the two.
///
/// # Errors
/// [`WireError`] when the entry is broken.
#[inline]
pub(super) fn entry_of(entry: &[u8]) -> Result<MapEntry<'_>, WireError> {
    let (mut key, mut value) = (&[][..], None);
    let mut fields = Fields::new(entry);
    while !fields.is_empty() {
        let tag = fields.varint()?;
        match tag >> 3 {
            1 => key = fields.run()?,
            2 => {
                value = Some(fields);
                fields.run()?;
            }
            // It need not be the number of a field.
            _ => drop(fields.content((tag & 7) as u8)?),
        }
    }
    Ok((key, value))
}

/// Splits a tag into the number of the field and the wire type.
///
/// # Errors
/// [`WireError`] when the number or the type does not exist.
#[inline(always)]
pub(super) fn tag_parts(tag: u64) -> Result<(u32, u8), WireError> {
    let wire_type = (tag & 7) as u8;
    match u32::try_from(tag >> 3) {
        Ok(number) if number > 0 && wire_type < 6 => Ok((number, wire_type)),
        _ => Err(WireError::IllegalTag {
            number: tag >> 3,
            wire_type,
        }),
    }
}

/// Reads a varint. Nearly all have one byte or two.
///
/// # Errors
/// [`Broken`] when it breaks off or has more than 64 bits.
#[inline(always)]
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, Broken> {
    match *bytes {
        [byte @ ..0x80, rest @ ..] => {
            *bytes = rest;
            Ok(u64::from(*byte))
        }
        [low, high @ ..0x80, rest @ ..] => {
            *bytes = rest;
            Ok(u64::from(*low & 0x7f) | u64::from(*high) << 7)
        }
        _ => long_varint(bytes),
    }
}

#[cold]
fn long_varint(bytes: &mut &[u8]) -> Result<u64, Broken> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Broken::Truncated)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Broken::Overflow)
}

/// Appends a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    each_varint_byte(value, |byte| out.push(byte));
}

/// Calls `push` with each byte of a varint.
pub(super) fn each_varint_byte(mut value: u64, mut push: impl FnMut(u8)) {
    while value >= 0x80 {
        push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    push(value as u8);
}

/// Appends a number as a field.
pub fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Appends a number of fixed size as a field.
pub(super) fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes as a field.
pub fn put_bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    put_run(out, field, content.len());
    out.extend_from_slice(content);
}

/// Appends the tag and the length of a field's bytes.
pub(super) fn put_run(out: &mut Vec<u8>, field: u32, length: usize) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends a field whose bytes `write` appends. One byte is reserved for their length, and more are inserted when it
/// turns out to be longer.
pub(super) fn put_nested(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, u64::from(field) << 3 | 2);
    let start = out.len();
    out.push(0);
    write(out);
    let (mut at, mut length) = (start, out.len() - start - 1);
    while length >= 0x80 {
        out[at] = (length & 0x7f) as u8 | 0x80;
        length >>= 7;
        at += 1;
        out.insert(at, 0);
    }
    out[at] = length as u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_fixed64(&mut out, 2, 7);
        put_nested(&mut out, 300, |out| out.extend_from_slice(&[9; 200]));
        let mut fields = Fields::new(&out);
        assert_eq!(
            fields.next_field(),
            Ok(Some((1, Content::Varint(u64::MAX))))
        );
        assert_eq!(fields.next_field(), Ok(Some((2, Content::Fixed64(7)))));
        assert_eq!(
            fields.next_field(),
            Ok(Some((300, Content::Bytes(&[9; 200]))))
        );
        assert_eq!(fields.next_field(), Ok(None));
    }

    #[test]
    fn broken_bytes_are_errors() {
        let error = |bytes: &[u8]| Fields::new(bytes).next_field().expect_err("broken");
        assert_eq!(error(&[0x08]), Broken::Truncated.into());
        assert_eq!(error(&[0x0a, 5, 1]), Broken::Truncated.into());
        assert_eq!(error(&[0xff; 11]), Broken::Overflow.into());
        assert_eq!(error(&[0x0c]), WireError::UnexpectedEndOfGroup);
        assert!(matches!(error(&[0x02]), WireError::IllegalTag { .. }));
        assert_eq!(error(&[0x0b; 40]), WireError::TooDeep);
        let mut negative = vec![0x0a];
        put_varint(&mut negative, u64::MAX);
        assert_eq!(error(&negative), Broken::NegativeLength.into());
        let group = [0x0b, 0x10, 1, 0x0c];
        assert_eq!(
            Fields::new(&group).next_field(),
            Ok(Some((1, Content::Group)))
        );
    }
}
