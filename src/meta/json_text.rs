//! Trees as JSON text in which numbers have the form that Go's `encoding/json` gives them: a float that is whole has no
//! point, and no exponent below 21 digits.
//!
//! Go keeps the two kinds of numbers of an object apart, integers of 64 bits and floats, until it is written. So do
//! trees here: the form in which a client sent a number is lost in this text alone.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Maximum number of bytes of the text of a float.
const DOUBLE_BYTES_MAX: usize = 32;

/// Returns a tree as compact JSON.
#[must_use]
pub fn json_text(value: &Value) -> String {
    let mut text = Vec::new();
    put_json(&mut text, value);
    // What was written is text.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends what has a form in JSON.
pub(crate) fn put_json(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // This cannot fail: trees and texts are JSON, and memory accepts them.
    let _ = value.serialize(&mut Serializer::with_formatter(text, GoNumbers));
}

struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_u64<W: Write + ?Sized>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.write_i64(writer, value),
            // Go reads such an integer as a float.
            Err(_) => self.write_f64(writer, value as f64),
        }
    }

    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // The sum makes one of both zeros: Go reads what it writes of a negative one as the integer 0.
        writer.write_all(DoubleText::new(value + 0.0).bytes())
    }
}

/// The text of a finite float, as Go writes it: with the fewest digits that identify it, and an exponent only if it is
/// very small or large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoubleText {
    bytes: [u8; DOUBLE_BYTES_MAX],
    length: usize,
}

impl DoubleText {
    /// Writes a float.
    pub(crate) fn new(number: f64) -> Self {
        let mut bytes = [0; DOUBLE_BYTES_MAX];
        let mut room = bytes.as_mut_slice();
        let size = number.abs();
        let is_plain = size == 0.0 || (1e-6..1e21).contains(&size);
        // There is room for all floats: 17 digits at most, with as many zeros as fit between the bounds above.
        let _ = match is_plain {
            true => write!(room, "{number}"),
            false => write!(room, "{number:e}"),
        };
        let length = DOUBLE_BYTES_MAX - room.len();
        let mut text = Self { bytes, length };
        if !is_plain {
            text.sign_exponent();
        }
        text
    }

    /// Returns the text.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Writes the sign of an exponent that is positive.
    fn sign_exponent(&mut self) {
        let mark = self.bytes().iter().position(|byte| *byte == b'e');
        if let Some(at) = mark.map(|mark| mark + 1)
            && self.bytes[at] != b'-'
        {
            self.bytes.copy_within(at..self.length, at + 1);
            self.bytes[at] = b'+';
            self.length += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_form_of_go() {
        for (sent, written) in [
            ("5", "5"),
            ("5.0", "5"),
            ("5e0", "5"),
            ("-7.50", "-7.5"),
            ("0.0", "0"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775809", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("18446744073709551616", "18446744073709552000"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("-1.5e300", "-1.5e+300"),
            ("0.000001", "0.000001"),
            ("1.5e-7", "1.5e-7"),
            ("-2.2250738585072014e-308", "-2.2250738585072014e-308"),
            ("123456789.125", "123456789.125"),
        ] {
            let value: Value = serde_json::from_str(&format!(r#"{{"a":[{sent}]}}"#)).expect("JSON");
            assert_eq!(
                json_text(&value),
                format!(r#"{{"a":[{written}]}}"#),
                "{sent}"
            );
        }
    }
}
