//! Objects decoded from stored bytes, and their conversion to JSON and trees.
//!
//! The first bytes of a stored object show its encoding: the magic bytes begin protobuf, everything else is JSON.
//! Protobuf is kept as it is, but for the resource version, which is moved to its place; JSON is brought into its
//! canonical layout.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::envelope::{self, MAGIC};
use super::error::{DecodeError, WireError};
use super::field_split::{FieldSplit, split_at};
use super::scalar::scalar_at;
use super::tables::{Message, kind};
use super::wire::{Content, Fields};
use crate::meta;
use crate::meta::{Attributes, FieldSchema, Item, Labels, Object, ProtobufParts};

/// The number of the envelope's field with the message.
const MESSAGE: u32 = 2;
/// The number of the metadata in every object's message.
const METADATA: u32 = 1;
/// The numbers of fields of the metadata.
const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const VERSION: u32 = 6;
const LABELS: u32 = 11;

/// The default kind and version of stored objects: none, since all carry them.
const UNTYPED: (&str, &str) = ("", "");

/// An error about stored bytes that are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It is not protobuf, and not JSON of an object.
    #[error(transparent)]
    Json(#[from] meta::DecodeError),
    /// It is protobuf that cannot be decoded.
    #[error(transparent)]
    Protobuf(#[from] DecodeError),
}

/// Decodes a stored object that was written at `revision` (0: not stored yet).
///
/// # Errors
/// [`ObjectError`] when it is not an object: its kind is unknown, or it is broken anywhere.
pub fn object(stored: &[u8], revision: u64, schema: &FieldSchema) -> Result<Object, ObjectError> {
    let Some(content) = stored.strip_prefix(&MAGIC) else {
        return Ok(Object::from_json(stored, revision, schema)?);
    };
    // An error deep inside must be reported now, not when the object is later converted to JSON.
    envelope::to_json(stored, UNTYPED)?;
    Ok(protobuf(content, revision, schema)?)
}

/// Returns the object as JSON, with its resource version.
///
/// # Errors
/// [`ObjectError`] only for an object that [`object`] did not decode.
pub fn json(object: &Object) -> Result<Bytes, ObjectError> {
    match object.item() {
        Item::Json(_) => Ok(object.bytes().clone()),
        Item::Protobuf(_) => Ok(envelope::to_json(object.bytes(), UNTYPED)?.into()),
    }
}

/// Returns the offset in an object's canonical JSON of the item of a list, after its opening brace.
#[must_use]
pub fn item_at(json: &[u8]) -> usize {
    const METADATA: &[u8] = b"\"metadata\":";
    // Kind and version come before it, in which quotes would be escaped.
    let mut windows = json.windows(METADATA.len());
    windows.position(|it| it == METADATA).unwrap_or(1)
}

/// Returns the object as a tree, with its resource version.
///
/// # Errors
/// [`ObjectError`] when JSON is nested too deeply in a part that was not decoded before.
pub fn tree(object: &Object) -> Result<Value, ObjectError> {
    match object.item() {
        Item::Json(_) => {
            let tree = serde_json::from_slice(object.bytes());
            Ok(tree.map_err(meta::DecodeError::from)?)
        }
        Item::Protobuf(_) => Ok(envelope::decode(object.bytes(), UNTYPED)?),
    }
}

/// Decodes the content of an envelope.
fn protobuf(content: &[u8], revision: u64, schema: &FieldSchema) -> Result<Object, DecodeError> {
    let envelope = envelope::unknown(content);
    let envelope = envelope.map_err(|error| DecodeError::Envelope(error.to_string()))?;
    let (api_version, name) = (&*envelope.api_version, &*envelope.kind);
    let Some(kind) = kind(api_version, name) else {
        return Err(DecodeError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: name.to_owned(),
        });
    };
    assemble(kind.0, content, revision, schema).map_err(|error| DecodeError::Object {
        api_version: api_version.to_owned(),
        kind: name.to_owned(),
        message: error.to_string(),
    })
}

/// Splits a protobuf object at its resource version, and assembles it with another one.
fn assemble(
    message: &Message,
    content: &[u8],
    revision: u64,
    schema: &FieldSchema,
) -> Result<Object, WireError> {
    if message
        .field(METADATA)
        .is_none_or(|it| it.name != "metadata")
    {
        return Err(WireError::Json(
            "objects of this kind have no metadata".to_owned(),
        ));
    }
    let envelope = split_at(content, MESSAGE, "raw")?;
    let body = envelope.found.last().copied().unwrap_or_default();
    let object = split_at(body, METADATA, "metadata")?;
    // A message that occurs several times is the concatenation of its occurrences.
    let metadata: Cow<'_, [u8]> = match object.found.as_slice() {
        [metadata] => Cow::Borrowed(metadata),
        parts => Cow::Owned(parts.concat()),
    };
    let FieldSplit { below, above, .. } = split_at(&metadata, VERSION, "resourceVersion")?;
    let mut attributes = attributes(&metadata)?;
    attributes.fields = schema.values(|path| scalar_at(message, body, path));
    let head = [&MAGIC, &*envelope.below].concat();
    let parts = ProtobufParts {
        head: &head,
        before_version: &below,
        after_version: &above,
        rest: &object.above,
        tail: &envelope.above,
    };
    Ok(Object::from_protobuf(&parts, revision, attributes))
}

/// Reads the attributes from the metadata, without the type's own fields.
fn attributes(metadata: &[u8]) -> Result<Attributes, WireError> {
    let mut attributes = Attributes::default();
    let mut labels = BTreeMap::new();
    let mut fields = Fields::new(metadata);
    while let Some((number, content)) = fields.next_field()? {
        let Content::Bytes(bytes) = content else {
            continue;
        };
        match number {
            NAME => attributes.name = text(bytes),
            NAMESPACE => attributes.namespace = text(bytes),
            UID => attributes.uid = text(bytes),
            LABELS => {
                let (key, value) = label(bytes)?;
                labels.insert(key, value);
            }
            _ => {}
        }
    }
    attributes.labels = Labels::from(labels);
    Ok(attributes)
}

/// Returns a label's key and value.
fn label(entry: &[u8]) -> Result<(Box<str>, Box<str>), WireError> {
    let (mut key, mut value) = (Box::default(), Box::default());
    let mut fields = Fields::new(entry);
    while let Some((number, content)) = fields.next_field()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => key = text(bytes),
            (2, Content::Bytes(bytes)) => value = text(bytes),
            _ => {}
        }
    }
    Ok((key, value))
}

fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}
