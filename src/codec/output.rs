//! A buffer of JSON, with a limit of its size.
//!
//! A few bytes on the wire may stand for long JSON, since Go writes empty fields that are absent from the wire. So the
//! output has a limit that depends on the size of the input. It grows in steps of its own, so that the last step does
//! not exceed the limit; beyond it nothing more is written, and [`Output::finish`] returns an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::WireError;
use crate::meta::DoubleText;

/// The JSON bytes that any object may have.
const OUTPUT_BYTES_MIN: usize = 4096;

/// The JSON bytes per byte of protobuf that an object may have beyond those. Sensible objects have up to three; text of
/// nothing but control characters has six.
const OUTPUT_PER_INPUT_MAX: usize = 8;

/// The bytes that are allocated at first, per byte of the input: enough for most objects.
const OUTPUT_PER_INPUT_FIRST: usize = 2;

/// Maximum number of bytes of an integer, digits and sign.
const NUMBER_BYTES_MAX: usize = 20;

/// A buffer of JSON with a limit.
#[derive(Debug)]
pub(super) struct Output {
    /// The written bytes, then space to fill in.
    bytes: Vec<u8>,
    /// The number of written bytes.
    length: usize,
    /// Maximum number of bytes that may be written.
    bytes_max: usize,
    /// True if something did not fit.
    full: bool,
}

impl Output {
    /// Creates the output for an input of this size.
    pub(super) fn new(input_bytes: usize) -> Self {
        let first = input_bytes.saturating_mul(OUTPUT_PER_INPUT_FIRST);
        Self {
            bytes: vec![0; first],
            length: 0,
            bytes_max: OUTPUT_BYTES_MIN
                .saturating_add(input_bytes.saturating_mul(OUTPUT_PER_INPUT_MAX)),
            full: false,
        }
    }

    /// Returns the written bytes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] when not everything did fit.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, WireError> {
        self.check()?;
        self.bytes.truncate(self.length);
        self.bytes.shrink_to_fit();
        Ok(self.bytes)
    }

    /// Checks that everything has fitted so far.
    ///
    /// # Errors
    /// [`WireError::TooLong`] when not.
    pub(super) fn check(&self) -> Result<(), WireError> {
        if self.full {
            Err(WireError::TooLong)
        } else {
            Ok(())
        }
    }

    /// Returns the number of written bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes that were written from an offset on.
    pub(super) fn since(&self, start: usize) -> &[u8] {
        self.bytes.get(start..self.length).unwrap_or_default()
    }

    /// Removes the bytes that were written from an offset on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Appends bytes that are JSON.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Appends the first bytes of a block, all of which is copied: its size is constant, so that takes no loop. Returns
    /// false if there is no space for the block.
    #[inline]
    pub(super) fn put_part<const N: usize>(&mut self, block: &[u8; N], length: usize) -> bool {
        let room = self.bytes.get_mut(self.length..);
        let Some(room) = room.and_then(<[u8]>::first_chunk_mut) else {
            return false;
        };
        *room = *block;
        self.length += length;
        true
    }

    /// Appends one byte.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        if let Some([room]) = self.room(1) {
            *room = byte;
        }
    }

    /// Ends a list or an object, after each of whose members a comma was written.
    #[inline]
    pub(super) fn close(&mut self, bracket: u8) {
        match self.bytes.get_mut(self.length.wrapping_sub(1)) {
            Some(comma) if *comma == b',' => *comma = bracket,
            _ => self.push(bracket),
        }
    }

    /// Appends bytes as a base64 string.
    pub(super) fn base64(&mut self, bytes: &[u8]) {
        let length = bytes.len().div_ceil(3) * 4;
        self.push(b'"');
        if let Some(room) = self.room(length) {
            // The space is as large as the text.
            let _ = STANDARD.encode_slice(bytes, room);
        }
        self.push(b'"');
    }

    /// Appends a whole number.
    pub(super) fn whole(&mut self, number: i64) {
        let mut digits = [0; NUMBER_BYTES_MAX];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.put(&digits[at..]);
    }

    /// Appends a number as Go writes it.
    ///
    /// # Errors
    /// [`WireError::Json`] for a value that is not a number.
    pub(super) fn double(&mut self, number: f64) -> Result<(), WireError> {
        if !number.is_finite() {
            return Err(WireError::Json(format!(
                "json: unsupported value: {number}"
            )));
        }
        self.put(DoubleText::new(number).bytes());
        Ok(())
    }

    /// Returns space of so many bytes, which must be filled in; `None` if the limit does not allow it.
    #[inline]
    pub(super) fn room(&mut self, more: usize) -> Option<&mut [u8]> {
        if more > self.bytes.len() - self.length && !self.grow(more) {
            return None;
        }
        let start = self.length;
        self.length += more;
        self.bytes.get_mut(start..self.length)
    }

    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        let length = self.length.saturating_add(more);
        if length > self.bytes_max {
            self.full = true;
            return false;
        }
        // Old and new bytes are in memory at once, so the last step starts from at most half of the limit.
        let doubled = self.bytes.len().saturating_mul(2).max(length);
        let is_last = doubled > self.bytes_max / 2;
        let capacity = if is_last { self.bytes_max } else { doubled };
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.bytes.resize(capacity, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Output)) -> String {
        let mut out = Output::new(0);
        write(&mut out);
        String::from_utf8(out.finish().expect("room")).expect("text")
    }

    #[test]
    fn numbers_are_those_of_go() {
        for (number, text) in [(0, "0"), (-7, "-7"), (i64::MIN, "-9223372036854775808")] {
            assert_eq!(written(|out| out.whole(number)), text);
        }
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.1"),
            (1e-6, "0.000001"),
            (1.5e-9, "1.5e-9"),
            (1e20, "100000000000000000000"),
            (-1e21, "-1e+21"),
            (1.25e100, "1.25e+100"),
        ] {
            assert_eq!(written(|out| out.double(number).expect("a number")), text);
        }
        assert!(Output::new(0).double(f64::NAN).is_err());
    }

    #[test]
    fn bytes_are_base64() {
        assert_eq!(written(|out| out.base64(b"")), r#""""#);
        assert_eq!(written(|out| out.base64(b"abcd")), r#""YWJjZA==""#);
    }

    #[test]
    fn there_is_a_ceiling() {
        let mut out = Output::new(10);
        let room = OUTPUT_BYTES_MIN + 10 * OUTPUT_PER_INPUT_MAX;
        for _ in 0..room {
            out.push(b'1');
        }
        assert_eq!(out.check(), Ok(()));
        assert!(out.bytes.capacity() <= room);
        out.put(b"1");
        assert_eq!(out.finish(), Err(WireError::TooLong));
    }
}
