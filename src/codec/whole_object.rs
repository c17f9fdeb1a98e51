//! Whole protobuf objects, with their envelope, to JSON and back.

use serde_json::Value;

use super::encode as write;
use super::envelope::{END, MAGIC, Unknown, begin, unknown};
use super::error::DecodeError;
use super::message::Kind;
use super::tables::kind;
use super::transcode;
use super::unknown_fields::{OldMessage, to_keep};
use super::wire::put_nested;

/// Decodes an object to JSON without white space: `kind`, `apiVersion`, `metadata`, then its other fields in the order
/// of their numbers in protobuf, which differs from the order of names in which this server writes its own JSON. A
/// version or kind that the envelope lacks, and a version that is none, is taken from `default`, a version and a kind.
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
    if unknown.api_version.is_empty() || unknown.api_version.matches('/').count() > 1 {
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

/// Encodes an object of a kind that has a message.
#[must_use]
pub fn encode(kind: Kind, object: &Value) -> Vec<u8> {
    written(kind, object, OldMessage::default())
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
        old.as_deref().map(OldMessage::new).unwrap_or_default(),
    )
}

fn written(kind: Kind, object: &Value, old: OldMessage<'_>) -> Vec<u8> {
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
