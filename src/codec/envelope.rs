//! The envelope of every protobuf object: magic bytes, kind and version.
//!
//! ```text
//! k8s\0  Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw, 3: contentEncoding, 4: contentType }
//! ```

use std::borrow::Cow;

use serde_json::Value;

use super::encode as write;
use super::error::{DecodeError, WireError};
use super::field_order;
use super::tables::{Kind, kind};
use super::transcode::{self, Transcoder};
use super::unknown_fields::{Old, to_keep};
use super::wire::{Content, Fields, put_bytes, put_nested};

/// The magic bytes with which every protobuf object begins.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The fields of the envelope, which Kubernetes calls `Unknown`.
#[derive(Debug, Default)]
pub(super) struct Unknown<'a> {
    pub(super) api_version: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    raw: &'a [u8],
}

/// Decodes an object to JSON without white space: `kind`, `apiVersion`, `metadata`, then its other fields in the order
/// of their numbers in protobuf, which differs from the order of names in which this server writes its own JSON. A
/// version or kind that the envelope lacks is taken from `default`, a version and a kind.
///
/// # Errors
/// [`DecodeError`] when the bytes are not an object of a known kind.
pub fn to_json(bytes: &[u8], default: (&str, &str)) -> Result<Vec<u8>, DecodeError> {
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
        unknown.api_version = default.0.into();
    }
    if unknown.kind.is_empty() {
        unknown.kind = default.1.into();
    }
    let Unknown {
        api_version,
        kind: name,
        raw,
    } = unknown;
    let Some(found) = kind(&api_version, &name) else {
        return Err(DecodeError::UnknownKind {
            api_version: api_version.into(),
            kind: name.into(),
        });
    };
    transcode::object(found.0, raw, &api_version, &name).map_err(|error| DecodeError::Object {
        api_version: api_version.into(),
        kind: name.into(),
        message: error.to_string(),
    })
}

/// Decodes an object to a tree; see [`to_json`].
///
/// # Errors
/// As [`to_json`].
pub fn decode(bytes: &[u8], default: (&str, &str)) -> Result<Value, DecodeError> {
    let json = to_json(bytes, default)?;
    // Checked as a whole, since the parser checks text by text.
    let json = str::from_utf8(&json).map_err(|error| DecodeError::Envelope(error.to_string()))?;
    serde_json::from_str(json).map_err(|error| DecodeError::Envelope(error.to_string()))
}

/// Writes an object within another one as JSON.
///
/// # Errors
/// [`WireError`] when it is broken, of an unknown kind, or nested too deeply.
pub(super) fn nested(
    transcoder: &mut Transcoder,
    bytes: &[u8],
    depth: usize,
) -> Result<(), WireError> {
    let (unknown, found) = typed(bytes)?;
    let Unknown {
        api_version,
        kind,
        raw,
    } = unknown;
    transcoder.typed(found.0, raw, &api_version, &kind, depth + 1)
}

/// Returns an object within another one, with its fields in order.
///
/// # Errors
/// As [`nested`].
pub(super) fn nested_ordered(bytes: &[u8], depth: usize) -> Result<Vec<u8>, WireError> {
    let (unknown, found) = typed(bytes)?;
    let raw = field_order::ordered(found.0, unknown.raw, depth + 1)?;
    let mut out = begin(&unknown.api_version, &unknown.kind);
    put_bytes(&mut out, 2, &raw);
    Ok(out)
}

/// Encodes an object of a kind that has a message.
#[must_use]
pub fn encode(kind: Kind, object: &Value) -> Vec<u8> {
    written(kind, object, Old::default())
}

/// Encodes an object that replaces an older one, given in its stored form. Fields of the older one that the tables do
/// not know are kept: in messages by field, in maps by key, in lists by the members that identify items where the
/// tables name them, otherwise by index. Nothing is kept of an older object that is not protobuf, or of another kind or
/// version.
#[must_use]
pub fn encode_over(kind: Kind, object: &Value, old: &[u8]) -> Vec<u8> {
    let unknown = old.strip_prefix(&MAGIC).and_then(|it| unknown(it).ok());
    let same = |unknown: &Unknown<'_>| {
        object["apiVersion"] == *unknown.api_version && object["kind"] == *unknown.kind
    };
    let old = unknown.filter(same).and_then(|it| to_keep(kind, it.raw));
    written(
        kind,
        object,
        old.as_deref().map(Old::new).unwrap_or_default(),
    )
}

fn written(kind: Kind, object: &Value, old: Old<'_>) -> Vec<u8> {
    let text = |name: &str| {
        let value = object.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let mut out = begin(text("apiVersion"), text("kind"));
    put_nested(&mut out, 2, |out| {
        write::message(out, kind.0, Some(object), old);
    });
    out.extend_from_slice(END);
    out
}

/// Encodes an object of any kind; `None` if its kind has no message.
///
/// ```
/// use ringwatch::codec;
/// use serde_json::json;
///
/// let pod = json!({
///     "kind": "Pod",
///     "apiVersion": "v1",
///     "metadata": {"name": "a", "namespace": "default"},
///     "spec": {"containers": [{"name": "main", "image": "busybox"}]},
/// });
/// let bytes = codec::encode_value(&pod).expect("pods have a message");
/// assert!(bytes.starts_with(&codec::MAGIC));
///
/// // Decoding adds the fields that Go writes although they are empty.
/// let decoded = codec::decode(&bytes, ("", ""))?;
/// assert_eq!(decoded["spec"]["containers"][0]["image"], "busybox");
/// assert_eq!(decoded["status"], json!({}));
///
/// assert_eq!(codec::encode_value(&json!({"kind": "Mine", "apiVersion": "example.com/v1"})), None);
/// # Ok::<(), codec::DecodeError>(())
/// ```
#[must_use]
pub fn encode_value(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let kind = kind(text("apiVersion")?, text("kind")?)?;
    Some(encode(kind, object))
}

/// The end of an object: an empty content encoding and content type, which Go writes as well.
pub(super) const END: &[u8] = &[0x1a, 0, 0x22, 0];

/// Returns the magic bytes and the type, up to the object.
pub(super) fn begin(api_version: &str, kind: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_nested(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    out
}

/// Reads the envelope after the magic bytes.
///
/// # Errors
/// [`WireError`] when the envelope is broken.
pub(super) fn unknown(content: &[u8]) -> Result<Unknown<'_>, WireError> {
    let mut unknown = Unknown::default();
    let mut fields = Fields::new(content);
    while let Some((number, content)) = fields.next_field()? {
        match (number, content) {
            (1, Content::Bytes(types)) => {
                let mut types = Fields::new(types);
                while let Some((number, content)) = types.next_field()? {
                    match (number, content) {
                        (1, Content::Bytes(version)) => {
                            unknown.api_version = String::from_utf8_lossy(version);
                        }
                        (2, Content::Bytes(kind)) => unknown.kind = String::from_utf8_lossy(kind),
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

/// Returns the envelope and the kind of an object within another one.
fn typed(bytes: &[u8]) -> Result<(Unknown<'_>, Kind), WireError> {
    let unknown = unknown(bytes.strip_prefix(&MAGIC).unwrap_or(bytes))?;
    match kind(&unknown.api_version, &unknown.kind) {
        Some(found) => Ok((unknown, found)),
        None => Err(WireError::Json(format!(
            "no kind {:?} is registered for version {:?}",
            unknown.kind, unknown.api_version
        ))),
    }
}
