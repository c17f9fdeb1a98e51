//! Parses JSON into a tree and reports duplicate fields.
//!
//! The last of two fields wins, as in Go. serde_json's own tree would drop the first silently, hence this visitor. The
//! parser limits nesting.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum number of duplicate fields that are reported, as in kube-apiserver; further ones are ignored.
pub(super) const COMPLAINTS_MAX: usize = 100;

/// Maximum number of bytes of paths in reports: one name of a megabyte may contain all duplicates.
pub(super) const PATH_BYTES_MAX: usize = 256 << 10;

/// A decoded JSON, YAML or protobuf document, and the duplicate fields found in it.
#[derive(Clone, Debug)]
pub(crate) struct DecodedBody {
    /// The document as a tree; of duplicate fields it has the last.
    pub(crate) value: Value,
    /// The complaints about duplicate fields of a JSON document, each with the field's path.
    pub(crate) complaints: Vec<String>,
    /// The complaints about duplicate keys of a YAML document, each with the key's line.
    pub(crate) repeated: Vec<String>,
}

/// Maximum number of bytes by which the replacement of broken characters makes a document longer.
const REPLACED_BYTES_MAX: usize = 64 * 1024;

/// Parses JSON, and records at most [`COMPLAINTS_MAX`] duplicate fields. As in Go, bytes and escapes in texts that are
/// no characters are replaced by U+FFFD.
pub(super) fn json(content: &[u8]) -> Result<DecodedBody, serde_json::Error> {
    const BROKEN: [&str; 3] = [
        "invalid unicode code point",
        "lone leading surrogate",
        "unexpected end of hex escape",
    ];
    parsed(content).or_else(|error| {
        let text = error.to_string();
        if !BROKEN.iter().any(|broken| text.starts_with(broken)) {
            return Err(error);
        }
        let replaced = with_replacements(content);
        if replaced.len() > content.len() + REPLACED_BYTES_MAX {
            return Err(error);
        }
        parsed(replaced.as_bytes()).map_err(|_| error)
    })
}

/// Returns a document with U+FFFD instead of each byte of texts that is no UTF-8, and of each escape that is half of a
/// pair.
fn with_replacements(content: &[u8]) -> String {
    let mut text = String::with_capacity(content.len());
    for chunk in content.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        replaced.push_str(before);
        let length = match (half(escape), escape.get(6..).and_then(half)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(_), _) => {
                replaced.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        replaced.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    replaced.push_str(rest);
    replaced
}

/// Returns the half of a pair of UTF-16 that an escape at the beginning of a text stands for.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&code).then_some(code)
}

fn parsed(content: &[u8]) -> Result<DecodedBody, serde_json::Error> {
    let mut duplicates = Duplicates::default();
    let mut deserializer = serde_json::Deserializer::from_slice(content);
    let value = Node {
        path: &Path::Root,
        duplicates: &mut duplicates,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    if duplicates.has_negative_zero
        && let Some(plain) = with_unsigned_zeros(content)
    {
        return parsed(&plain);
    }
    Ok(DecodedBody {
        value,
        complaints: duplicates.reported,
        repeated: Vec::new(),
    })
}

/// Returns JSON with the integer 0 instead of each `-0`, which the parser takes for a float; `None` if there is none.
fn with_unsigned_zeros(content: &[u8]) -> Option<Vec<u8>> {
    let mut plain = None;
    let mut is_in_text = false;
    let mut at = 0;
    while let Some(byte) = content.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => is_in_text = !is_in_text,
            b'-' if !is_in_text && is_integer_zero(content, at) => {
                plain.get_or_insert_with(|| content.to_vec())[at] = b' ';
            }
            _ => {}
        }
        at += 1;
    }
    plain
}

/// Returns true if a sign at a place, which is not in a text, is that of an integer 0.
fn is_integer_zero(content: &[u8], sign: usize) -> bool {
    let is_exponent = sign > 0 && matches!(content[sign - 1], b'e' | b'E');
    let number = &content[sign + 1..];
    !is_exponent
        && number.first() == Some(&b'0')
        && !matches!(number.get(1), Some(b'.' | b'e' | b'E'))
}

/// The path of a value in a document, as a list from the value up to the root.
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

/// Collects the complaints about duplicate fields while a document is read.
#[derive(Default)]
struct Duplicates {
    /// True if there is a `-0`, or a float that is one.
    has_negative_zero: bool,
    reported: Vec<String>,
    /// The number of bytes of paths that have been written, those of duplicates that were reported before included.
    path_bytes: usize,
}

impl Duplicates {
    fn report(&mut self, path: &Path<'_>) {
        if self.reported.len() >= COMPLAINTS_MAX || self.path_bytes >= PATH_BYTES_MAX {
            return;
        }
        let complaint = format!("duplicate field \"{path}\"");
        self.path_bytes += complaint.len();
        if !self.reported.contains(&complaint) {
            self.reported.push(complaint);
        }
    }
}

/// The seed that deserializes the value at a path.
struct Node<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Duplicates,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.duplicates.has_negative_zero |= value == 0.0 && value.is_sign_negative();
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let path = Path::Index(self.path, values.len());
            let node = Node {
                path: &path,
                duplicates: self.duplicates,
            };
            match items.next_element_seed(node)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = Path::Field(self.path, &name);
            let node = Node {
                path: &path,
                duplicates: self.duplicates,
            };
            let value = members.next_value_seed(node)?;
            if object.contains_key(&name) {
                self.duplicates.report(&path);
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_character_is_replaced() {
        let read = |content: &[u8]| json(content).map(|it| it.value["a"].clone());
        for (content, expected) in [
            (&b"{\"a\":\"\\ud83d\"}"[..], "\u{fffd}"),
            (b"{\"a\":\"\\ude00x\"}", "\u{fffd}x"),
            (
                b"{\"a\":\"\\ud83d\\ude00\\ud83d\\n\"}",
                "\u{1f600}\u{fffd}\n",
            ),
            (b"{\"a\":\"\\ud83d\\ud83d\\ude00\"}", "\u{fffd}\u{1f600}"),
            (
                b"{\"a\":\"x\xff\xfey\\\\ud83d\"}",
                "x\u{fffd}\u{fffd}y\\ud83d",
            ),
        ] {
            assert_eq!(read(content).expect("JSON"), expected);
        }
        assert!(read(b"\xff{}").is_err());
        let many = [&b"{\"a\":\""[..], &[0xff; REPLACED_BYTES_MAX], b"\"}"].concat();
        assert!(read(&many).is_err());
    }

    #[test]
    fn an_integer_zero_has_no_sign() {
        let text = r#"{"a":[-0,-0.0,-0e1,1e-0,-0 ,-1,0],"b":"\\\"-0","-0":-0,"c":-0}"#;
        let Value::Object(members) = json(text.as_bytes()).expect("JSON").value else {
            panic!("an object");
        };
        let written = serde_json::to_string(&members).expect("JSON");
        assert_eq!(
            written,
            r#"{"-0":0,"a":[0,-0.0,-0.0,1.0,0,-1,0],"b":"\\\"-0","c":0}"#
        );
        assert_eq!(json(b"-0").expect("JSON").value, serde_json::json!(0));
        assert!(json(b"[-01]").is_err());
    }

    #[test]
    fn duplicates_are_told_with_their_path() {
        let decoded = json(br#"{"a":[{"b":1,"b":2}],"c":{"d":1,"d":3}}"#).expect("json");
        assert_eq!(
            decoded.complaints,
            ["duplicate field \"a[0].b\"", "duplicate field \"c.d\""]
        );
        assert_eq!(
            decoded.value,
            serde_json::json!({"a": [{"b": 2}], "c": {"d": 3}})
        );
    }

    #[test]
    fn of_many_duplicates_the_first_are_told() {
        let fields = |count: usize| {
            let fields: Vec<String> = (0..count).map(|it| format!("\"a{it}\":1")).collect();
            fields.join(",")
        };
        let repeated = format!("{{{0},{0}}}", fields(2 * COMPLAINTS_MAX));
        let decoded = json(repeated.as_bytes()).expect("json");
        assert_eq!(decoded.complaints.len(), COMPLAINTS_MAX);
        let thrice = json(br#"{"a":1,"a":2,"a":3}"#).expect("json");
        assert_eq!(thrice.complaints, ["duplicate field \"a\""]);
    }

    #[test]
    fn long_names_above_duplicates_are_not_written_for_each() {
        let name = "n".repeat(PATH_BYTES_MAX);
        let content = format!("{{\"{name}\":{{\"a\":1,\"a\":2,\"b\":1,\"b\":2}}}}");
        let decoded = json(content.as_bytes()).expect("json");
        assert_eq!(decoded.complaints.len(), 1);
    }

    #[test]
    fn nesting_is_limited() {
        let deep = "[".repeat(100_000);
        assert!(json(deep.as_bytes()).is_err());
    }
}
