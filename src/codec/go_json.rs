//! Trees as the compact JSON that Go's `json.Marshal` writes: in strings, characters that are special in HTML or
//! JavaScript are escaped.
//!
//! Objects such as ControllerRevisions hold JSON as bytes, and the controllers that wrote it compare those bytes. So
//! what they wrote by `json.Marshal` must be the same after it was read and written here.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// The characters that Go escapes although JSON does not require it.
const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

struct AsGo;

impl Formatter for AsGo {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, special)) = rest.match_indices(SPECIAL).next() {
            writer.write_all(&rest.as_bytes()[..at])?;
            for character in special.chars() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = &rest[at + special.len()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Appends a tree.
pub(super) fn write(out: &mut Vec<u8>, value: &Value) {
    // This cannot fail: a tree is JSON, and memory accepts it.
    let _ = value.serialize(&mut Serializer::with_formatter(out, AsGo));
}

/// Returns a whole number, which may be written with a decimal point; 0 if the value is none.
pub(super) fn whole(value: Option<&Value>) -> i64 {
    let Some(value) = value else { return 0 };
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|number| number as i64))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_go_wrote_is_written_again() {
        for text in [
            r#"{"a":"x \u0026\u0026 y \u003e z \u003c","b":[1,true,null]}"#,
            r#"{"\u0026":"\u2028\u2029\n\"\\é"}"#,
            r#""""#,
        ] {
            let value: Value = serde_json::from_str(text).expect("JSON");
            let mut out = Vec::new();
            write(&mut out, &value);
            assert_eq!(String::from_utf8(out).expect("text"), text);
        }
        let mut out = b"before".to_vec();
        write(&mut out, &json!({"a": "<>"}));
        assert_eq!(out, br#"before{"a":"\u003c\u003e"}"#);
    }
}
