//! What is around every object: magic bytes, kind and version.
//!
//! ```text
//! k8s\0  Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw, 3: contentEncoding, 4: contentType }
//! ```

use serde_json::{Map, Value};

use super::decode::Decoder;
use super::encode as write;
use super::error::{DecodeError, WireError};
use super::tables::{Kind, kind};
use super::wire::{Content, Fields, put_bytes, put_nested};

/// The first bytes of every object.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// What the envelope says.
#[derive(Debug, Default)]
struct Unknown<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

/// Reads an object. What its envelope leaves out is taken from `default`, a version and a kind.
///
/// # Errors
/// [`DecodeError`] when the bytes are not an object of a known kind.
pub fn decode(bytes: &[u8], default: (&str, &str)) -> Result<Value, DecodeError> {
    let broken = |text: &str| DecodeError::Envelope(text.to_owned());
    if bytes.is_empty() {
        return Err(broken("empty data"));
    }
    let Some(content) = bytes.strip_prefix(&MAGIC) else {
        return Err(broken(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ));
    };
    if content.is_empty() {
        return Err(broken("empty body"));
    }
    let mut unknown = unknown(content).map_err(|error| broken(&error.to_string()))?;
    if unknown.api_version.is_empty() {
        default.0.clone_into(&mut unknown.api_version);
    }
    if unknown.kind.is_empty() {
        default.1.clone_into(&mut unknown.kind);
    }
    let Unknown {
        api_version,
        kind: name,
        raw,
    } = unknown;
    let Some(found) = kind(&api_version, &name) else {
        return Err(DecodeError::UnknownKind {
            api_version,
            kind: name,
        });
    };
    let mut decoder = Decoder::new(bytes.len());
    match decoder.message(found.0, raw, 0) {
        Ok(value) => Ok(typed(value, api_version, name)),
        Err(error) => Err(DecodeError::Object {
            api_version,
            kind: name,
            message: error.to_string(),
        }),
    }
}

/// Reads an object within another.
///
/// # Errors
/// [`WireError`] when it is broken, of an unknown kind, or too deep.
pub(super) fn nested(
    decoder: &mut Decoder,
    bytes: &[u8],
    depth: usize,
) -> Result<Value, WireError> {
    let unknown = unknown(bytes.strip_prefix(&MAGIC).unwrap_or(bytes))?;
    let Some(found) = kind(&unknown.api_version, &unknown.kind) else {
        return Err(WireError::Json(format!(
            "no kind {:?} is registered for version {:?}",
            unknown.kind, unknown.api_version
        )));
    };
    let value = decoder.message(found.0, unknown.raw, depth)?;
    Ok(typed(value, unknown.api_version, unknown.kind))
}

/// Writes an object, which is of a kind that has a message.
#[must_use]
pub fn encode(kind: Kind, object: &Value) -> Vec<u8> {
    let text = |name: &str| {
        let value = object.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let mut out = begin(text("apiVersion"), text("kind"));
    put_nested(&mut out, 2, |out| write::message(out, kind.0, Some(object)));
    out.extend_from_slice(END);
    out
}

/// Writes an object of any kind; `None` if its kind has no message.
#[must_use]
pub fn encode_value(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let kind = kind(text("apiVersion")?, text("kind")?)?;
    Some(encode(kind, object))
}

/// What follows the object: no encoding and no type of its content, which Go writes all the same.
pub(super) const END: &[u8] = &[0x1a, 0, 0x22, 0];

/// The magic bytes and the type, up to the object.
pub(super) fn begin(api_version: &str, kind: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_nested(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    out
}

fn unknown(content: &[u8]) -> Result<Unknown<'_>, WireError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut unknown = Unknown::default();
    let mut fields = Fields::new(content);
    while let Some((number, content)) = fields.next()? {
        match (number, content) {
            (1, Content::Bytes(types)) => {
                let mut types = Fields::new(types);
                while let Some((number, content)) = types.next()? {
                    match (number, content) {
                        (1, Content::Bytes(version)) => unknown.api_version = text(version),
                        (2, Content::Bytes(kind)) => unknown.kind = text(kind),
                        _ => {}
                    }
                }
            }
            (2, Content::Bytes(raw)) => unknown.raw = raw,
            _ => {}
        }
    }
    Ok(unknown)
}

/// The object with its version and kind.
fn typed(value: Value, api_version: String, kind: String) -> Value {
    let mut members = match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), kind.into());
    Value::Object(members)
}
