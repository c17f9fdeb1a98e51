//! Bodies in JSON. The parser agrees with serde_json's own but for texts that are no Unicode, which it mends. What it
//! has read can be written and read as the same, and takes no more memory than is set aside for a body. An object of a
//! built-in kind can be written as protobuf.

use ringwatch::codec;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_endpoints::parsers::{self, ParsedDocument};
use ringwatch_offload::{Work, memory_for};
use serde_json::{Number, Value};

use crate::memory::within;

const MEDIA_TYPE: &str = "application/json";

/// The most memory that it may take to write an object in protobuf, as a multiple of the size of its JSON.
const FACTOR: usize = 16;

pub(crate) fn run(bytes: &[u8]) -> bool {
    let memory = usize::try_from(memory_for(Work::Body, bytes)).unwrap();
    let read = within(memory, "a document", || document(bytes));
    let plain = serde_json::from_slice::<Value>(bytes);
    let value = match (read, plain) {
        (Ok(document), Ok(plain)) => {
            let is_same = is_same(&document.value, &plain, is_same_number);
            assert!(is_same, "both parsers read {plain}: {}", document.value);
            document.value
        }
        (Err(_), Err(_)) => return false,
        (Ok(document), Err(_)) if may_be_mended(bytes) => document.value,
        (read, plain) => panic!("the parsers differ: {read:?}, {plain:?}"),
    };
    let text = value.to_string();
    let again = document(text.as_bytes());
    assert_eq!(again.map(|it| it.value).as_ref(), Ok(&value));
    let written = within(FACTOR * bytes.len(), "to protobuf", || {
        codec::encode_value(&value)
    });
    // Some of what JSON can say has no place in protobuf, but the bytes are whole.
    let _ = written.map(|it| codec::decode(&it, ("", "")));
    typed(bytes, &value, memory);
    true
}

/// Parses a body as any document.
pub(crate) fn document(bytes: &[u8]) -> Result<ParsedDocument, String> {
    parsers::document(MEDIA_TYPE, bytes, ("", ""))
}

/// Returns true if two numbers are equal but for the form of zeros: the integer -0 is a float to serde_json.
fn is_same_number(one: &Number, other: &Number) -> bool {
    one == other || (one.as_f64(), other.as_f64()) == (Some(0.0), Some(0.0))
}

/// Returns true if two trees are equal, as far as their numbers are.
pub(crate) fn is_same(
    one: &Value,
    other: &Value,
    is_same_number: fn(&Number, &Number) -> bool,
) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other, is_same_number))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.iter();
            one.len() == other.len()
                && members.all(|(name, one)| {
                    let other = other.get(name);
                    other.is_some_and(|it| is_same(one, it, is_same_number))
                })
        }
        _ => one == other,
    }
}

/// Returns true if a document has bytes that are no UTF-8, or escapes that can be half of a pair.
fn may_be_mended(bytes: &[u8]) -> bool {
    let halves = [&b"\\ud"[..], b"\\uD"];
    let has_half = bytes.windows(3).any(|it| halves.contains(&it));
    has_half || str::from_utf8(bytes).is_err()
}

/// Reads a body as an object of the kind that it says it is.
pub(crate) fn typed(bytes: &[u8], value: &Value, memory: usize) {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let group_version = GroupVersion::new(group, version);
    let read = within(memory, "an object", || {
        parsers::object(MEDIA_TYPE, bytes, &group_version, text("kind"))
    });
    let Ok(object) = read else {
        return;
    };
    let written = object.to_string();
    let again = parsers::object(MEDIA_TYPE, written.as_bytes(), &group_version, text("kind"));
    assert_eq!(again, Ok(object), "an object is read as the same once more");
}
