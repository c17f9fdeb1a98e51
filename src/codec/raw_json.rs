//! JSON that an object contains as bytes: checked, and copied without white space.
//!
//! Nearly all of it is compact already, which a quick check finds out; anything that the check does not cover is parsed
//! and copied in runs. The order of members and the digits of numbers stay as they are. What is copied is valid for any
//! JSON parser.

use super::error::WireError;
use super::json_string;
use super::output::Output;
use super::wire::NESTING_MAX;

/// Numbers with fewer digits and no exponent are in the range of a double.
const DIGITS_SAFE: usize = 300;

/// A parser's position in the text.
struct Compactor<'a> {
    raw: &'a [u8],
    at: usize,
    /// The offset from which nothing has been copied yet.
    copied: usize,
    /// The open brackets as a stack of bits, the innermost the lowest: 1 for an object.
    open: u128,
}

/// Appends JSON that is nested `depth` levels deep.
///
/// # Errors
/// [`WireError`] when it is not JSON, or nested too deeply.
pub(super) fn put(out: &mut Output, raw: &[u8], depth: usize) -> Result<(), WireError> {
    if is_compact(raw, NESTING_MAX.saturating_sub(depth + 1)) {
        out.put(raw);
        return Ok(());
    }
    if std::str::from_utf8(raw).is_err() {
        return Err(WireError::Json("json: not UTF-8".to_owned()));
    }
    let mut compactor = Compactor {
        raw,
        at: 0,
        copied: 0,
        open: 1,
    };
    compactor.text(out, depth)
}

/// Returns true if the bytes are certainly JSON that can be copied as it is, nested no deeper than `depth_max`. Managed
/// fields are: objects of objects, without spaces or numbers.
fn is_compact(raw: &[u8], depth_max: usize) -> bool {
    let is_other = |byte: u8| !(b'!'..=b'~').contains(&byte) || matches!(byte, b'<' | b'>' | b'&');
    let is_simple = !raw
        .iter()
        .fold(false, |other, byte| other | is_other(*byte));
    is_simple && after_object(raw, depth_max).is_some_and(<[u8]>::is_empty)
}

/// Returns the bytes after an object of objects and strings without spaces; `None` for anything else.
fn after_object(raw: &[u8], depth_max: usize) -> Option<&[u8]> {
    let (mut rest, mut depth) = (raw.strip_prefix(b"{")?, 1);
    loop {
        if depth > depth_max {
            return None;
        }
        if let Some(after) = rest.strip_prefix(b"}") {
            rest = after;
            depth -= 1;
        } else {
            // Nearly all members are empty, and followed by another one.
            rest = loop {
                match after_text(rest)? {
                    [b':', b'{', b'}', b',', after @ ..] => rest = after,
                    [b':', after @ ..] => break after,
                    _ => return None,
                }
            };
            if let Some(after) = rest.strip_prefix(b"{") {
                rest = after;
                depth += 1;
                continue;
            }
            rest = after_text(rest)?;
        }
        // A value has ended, and so may the objects around it.
        rest = loop {
            match rest {
                _ if depth == 0 => return Some(rest),
                [b'}', after @ ..] => rest = after,
                [b',', after @ ..] => break after,
                _ => return None,
            }
            depth -= 1;
        };
    }
}

/// Returns the bytes after a string; `None` if it has other escapes than those of quotes and backslashes.
#[inline]
fn after_text(raw: &[u8]) -> Option<&[u8]> {
    let mut rest = raw.strip_prefix(b"\"")?;
    loop {
        rest = &rest[json_string::unquoted_bytes(rest)..];
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'"' | b'\\', after @ ..] => rest = after,
            _ => return None,
        }
    }
}

impl Compactor<'_> {
    fn text(&mut self, out: &mut Output, base: usize) -> Result<(), WireError> {
        let mut depth = base;
        loop {
            self.skip_space(out);
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    depth += 1;
                    if depth >= NESTING_MAX {
                        return Err(WireError::TooDeep);
                    }
                    self.open = self.open << 1 | u128::from(bracket == b'{');
                    self.at += 1;
                    self.skip_space(out);
                    if self.peek() != Some(self.closing()) {
                        if bracket == b'{' {
                            self.name(out)?;
                        }
                        continue;
                    }
                }
                _ => self.scalar(out)?,
            }
            // A value has ended, and so may the objects and lists around it.
            loop {
                self.skip_space(out);
                match self.peek() {
                    None if depth == base => {
                        out.put(&self.raw[self.copied..]);
                        return Ok(());
                    }
                    Some(b',') if depth > base => {
                        self.at += 1;
                        if self.open & 1 == 1 {
                            self.skip_space(out);
                            self.name(out)?;
                        }
                        break;
                    }
                    Some(byte) if depth > base && byte == self.closing() => {
                        self.at += 1;
                        self.open >>= 1;
                        depth -= 1;
                    }
                    _ => return Err(self.unexpected()),
                }
            }
        }
    }

    fn closing(&self) -> u8 {
        if self.open & 1 == 1 { b'}' } else { b']' }
    }

    fn peek(&self) -> Option<u8> {
        self.raw.get(self.at).copied()
    }

    /// Copies up to here, and continues after so many bytes.
    fn replace(&mut self, out: &mut Output, bytes: usize) {
        out.put(&self.raw[self.copied..self.at]);
        self.at += bytes;
        self.copied = self.at;
    }

    #[inline]
    fn skip_space(&mut self, out: &mut Output) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.replace(out, 1);
        }
    }

    fn name(&mut self, out: &mut Output) -> Result<(), WireError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.string(out)?;
        self.skip_space(out);
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self, out: &mut Output) -> Result<(), WireError> {
        match self.peek() {
            Some(b'"') => self.string(out),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(self.unexpected()),
        }
    }

    fn literal(&mut self, literal: &[u8]) -> Result<(), WireError> {
        if !self.raw[self.at..].starts_with(literal) {
            return Err(self.unexpected());
        }
        self.at += literal.len();
        Ok(())
    }

    fn string(&mut self, out: &mut Output) -> Result<(), WireError> {
        self.at += 1;
        loop {
            self.at += json_string::plain_bytes(&self.raw[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(out)?,
                Some(byte @ (b'<' | b'>' | b'&')) => {
                    self.replace(out, 1);
                    json_string::put_escaped(out, byte);
                }
                Some(0x80..) if json_string::is_separator(&self.raw[self.at..]) => {
                    let rest = &self.raw[self.at..];
                    self.replace(out, json_string::SEPARATOR_BYTES);
                    json_string::put_separator(out, rest);
                }
                Some(0x80..) => self.at += 1,
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Half a surrogate pair is not a character, and parsers refuse it.
    fn escape(&mut self, out: &mut Output) -> Result<(), WireError> {
        match self.raw.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.unit(self.at) {
                Some(0xd800..0xdc00) if matches!(self.unit(self.at + 6), Some(0xdc00..0xe000)) => {
                    self.at += 12;
                }
                Some(0xd800..0xe000) => {
                    self.replace(out, 6);
                    out.put(json_string::REPLACEMENT);
                }
                Some(_) => self.at += 6,
                None => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// Returns the number of an escape, `\u` and four digits.
    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.raw.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |number, digit| {
            Some(number << 4 | char::from(*digit).to_digit(16)?)
        })
    }

    fn number(&mut self) -> Result<(), WireError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let digits = &self.raw[start..self.at];
        if exponent || digits.len() > DIGITS_SAFE {
            let number = std::str::from_utf8(digits)
                .ok()
                .and_then(|it| it.parse().ok());
            if !number.is_some_and(f64::is_finite) {
                return Err(WireError::Json("json: number out of range".to_owned()));
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), WireError> {
        let rest = &self.raw[self.at..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        match end.unwrap_or(rest.len()) {
            0 => Err(self.unexpected()),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    fn unexpected(&self) -> WireError {
        WireError::Json(match self.peek() {
            Some(byte) => format!(
                "json: invalid character '{}' at byte {}",
                byte.escape_ascii(),
                self.at
            ),
            None => "json: unexpected end of JSON input".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn compact(raw: &[u8]) -> Result<String, WireError> {
        let mut out = Output::new(raw.len());
        put(&mut out, raw, 0)?;
        Ok(String::from_utf8(out.finish()?).expect("text"))
    }

    #[test]
    fn space_goes_and_the_rest_stays() {
        for (raw, expected) in [
            (" { } ", "{}"),
            ("[ ]", "[]"),
            (
                "{ \"b\" : [ 1.50 , -0, 1E+2 ],\n\"a\":{\"x\":null},\"a\":true }",
                "{\"b\":[1.50,-0,1E+2],\"a\":{\"x\":null},\"a\":true}",
            ),
            (
                "\"<\\u0041\\n&\u{2028}é\"",
                "\"\\u003c\\u0041\\n\\u0026\\u2028é\"",
            ),
            (
                r#"{"f:a":{".":{},"k:{\"n\\\":\"x\"}":{}},"b":"\/","c":"d"}"#,
                r#"{"f:a":{".":{},"k:{\"n\\\":\"x\"}":{}},"b":"\/","c":"d"}"#,
            ),
            ("\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""),
            ("\"\\ud83d\\u0041\\ude00\"", "\"\\ufffd\\u0041\\ufffd\""),
        ] {
            assert_eq!(compact(raw.as_bytes()).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for raw in [
            &b""[..],
            b" ",
            b"{",
            b"[1",
            b"]",
            b"[1,]",
            b"{\"a\"}",
            b"{\"a\":}",
            b"{\"a\":1,}",
            b"{a:1}",
            b"01",
            b"1.",
            b"-",
            b"1e",
            b"+1",
            b"tru",
            b"\"a",
            b"\"\\x\"",
            b"\"\\u00g0\"",
            b"\"\n\"",
            b"1 2",
            b"[1}",
            b"{\"a\":1]",
            b"\"\xff\"",
            b"1e999",
            b"\xc3\xa9",
        ] {
            assert!(compact(raw).is_err(), "{}", raw.escape_ascii());
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(compact(deep(NESTING_MAX - 1).as_bytes()).is_ok());
        assert_eq!(
            compact(deep(NESTING_MAX).as_bytes()),
            Err(WireError::TooDeep)
        );
        let deep = |depth: usize| "{\"a\":".repeat(depth) + "{}" + &"}".repeat(depth);
        assert!(compact(deep(NESTING_MAX - 2).as_bytes()).is_ok());
        assert_eq!(
            compact(deep(NESTING_MAX - 1).as_bytes()),
            Err(WireError::TooDeep)
        );
    }

    proptest! {
        /// A reader gets the same value from both forms, and refuses both or neither.
        #[test]
        fn readers_agree_on_objects(raw in r#"(\{(("a"|"\\["\\n]"):)?|\}|[,x]){1,10}"#) {
            prop_assert_eq!(compact(raw.as_bytes()).is_ok(), serde_json::from_str::<Value>(&raw).is_ok());
        }

        /// The same for all of JSON.
        #[test]
        fn readers_agree(raw in r#"[\[\]{},:"\\u0-9d.eE+\- truefalsn<é]{0,24}"#) {
            let expected: Result<Value, _> = serde_json::from_str(&raw);
            let found = compact(raw.as_bytes());
            if let Ok(expected) = expected {
                let found: Value = serde_json::from_str(&found.expect("JSON")).expect("JSON");
                prop_assert_eq!(found, expected);
            } else if let Ok(found) = found {
                // Only half pairs of surrogates are mended.
                prop_assert!(found.contains("\\ufffd"), "{raw} became {found}");
            }
        }
    }
}
