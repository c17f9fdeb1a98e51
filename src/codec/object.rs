//! Objects decoded from stored bytes, and their conversion to JSON and trees.
//!
//! The first bytes of a stored object show its encoding: the magic bytes begin protobuf, everything else is JSON.
//! Protobuf is kept as it is if its fields are in order and its resource version is empty; JSON, if its layout is
//! canonical. Otherwise the object gets bytes of its own.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use super::envelope::{self, MAGIC};
use super::error::{DecodeError, WireError};
use super::field_split::{FieldSplit, split_at};
use super::message::Message;
use super::scalar::scalar_at;
use super::tables::kind;
use super::whole_object;
use super::wire::{Content, Fields};
use crate::meta;
use crate::meta::{
    AttributeSpans, FieldSchema, FieldValues, Object, PlacesBuilder, ProtobufForm, ProtobufParts,
    StoredForm,
};

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

/// Decodes a copy of a stored object that was written at `revision` (0: not stored yet).
///
/// # Errors
/// [`ObjectError`] as [`object_sharing`].
pub fn object(stored: &[u8], revision: u64, schema: &FieldSchema) -> Result<Object, ObjectError> {
    object_sharing(Bytes::copy_from_slice(stored), revision, schema)
}

/// Decodes a stored object that was written at `revision` (0: not stored yet), and shares its bytes.
///
/// # Errors
/// [`ObjectError`] when it is not an object: its kind is unknown, or it is broken anywhere.
pub fn object_sharing(
    stored: Bytes,
    revision: u64,
    schema: &FieldSchema,
) -> Result<Object, ObjectError> {
    if stored.starts_with(&MAGIC) {
        // An error deep inside must be reported now, not when the object is later converted to JSON.
        whole_object::to_json(&stored, UNTYPED)?;
    }
    object_encoded(stored, revision, schema)
}

/// Makes an object of bytes that this program has just encoded, as [`object_sharing`] does of others' bytes, but
/// without a check that all parts can be read.
///
/// # Errors
/// [`ObjectError`] when it is not an object.
pub fn object_encoded(
    encoded: Bytes,
    revision: u64,
    schema: &FieldSchema,
) -> Result<Object, ObjectError> {
    if !encoded.starts_with(&MAGIC) {
        return Ok(Object::from_json(encoded, revision, schema)?);
    }
    let (form, places) = protobuf(&encoded, schema)?;
    Ok(Object::from_protobuf(encoded, form, revision, places))
}

/// Returns the object as JSON, with its resource version.
///
/// # Errors
/// [`ObjectError`] only for an object that [`object`] did not decode.
pub fn json(object: &Object) -> Result<Bytes, ObjectError> {
    let bytes = object.bytes();
    match object.form() {
        StoredForm::Json => Ok(bytes),
        StoredForm::Protobuf => Ok(whole_object::to_json(&bytes, UNTYPED)?.into()),
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
    let bytes = object.bytes();
    match object.form() {
        StoredForm::Json => {
            let tree = serde_json::from_slice(&bytes);
            Ok(tree.map_err(meta::DecodeError::from)?)
        }
        StoredForm::Protobuf => Ok(whole_object::decode(&bytes, UNTYPED)?),
    }
}

/// Reads an object in its envelope.
fn protobuf(
    stored: &[u8],
    schema: &FieldSchema,
) -> Result<(ProtobufForm, AttributeSpans), DecodeError> {
    let envelope = envelope::unknown(&stored[MAGIC.len()..]);
    let envelope = envelope.map_err(|error| DecodeError::Envelope(error.to_string()))?;
    let (api_version, name) = (&*envelope.api_version, &*envelope.kind);
    let Some(kind) = kind(api_version, name) else {
        return Err(DecodeError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: name.to_owned(),
        });
    };
    parts(kind.0, stored, schema).map_err(|error| DecodeError::Object {
        api_version: api_version.to_owned(),
        kind: name.to_owned(),
        message: error.to_string(),
    })
}

/// Splits a protobuf object at its resource version.
fn parts(
    message: &Message,
    stored: &[u8],
    schema: &FieldSchema,
) -> Result<(ProtobufForm, AttributeSpans), WireError> {
    if message
        .field(METADATA)
        .is_none_or(|it| it.name != "metadata")
    {
        return Err(WireError::Json(
            "objects of this kind have no metadata".to_owned(),
        ));
    }
    let envelope = split_at(&stored[MAGIC.len()..], MESSAGE, "raw")?;
    let body = envelope.found.last().copied().unwrap_or_default();
    let object = split_at(body, METADATA, "metadata")?;
    // A message that occurs several times is the concatenation of its occurrences.
    let metadata: Cow<'_, [u8]> = match object.found.as_slice() {
        [metadata] => Cow::Borrowed(metadata),
        parts => Cow::Owned(parts.concat()),
    };
    let FieldSplit { below, above, .. } = split_at(&metadata, VERSION, "resourceVersion")?;
    let head = [&MAGIC, &*envelope.below].concat();
    let parts = ProtobufParts {
        head: &head,
        before_version: &below,
        after_version: &above,
        rest: &object.above,
        tail: &envelope.above,
    };
    let form = ProtobufForm::new(&parts, stored);
    let fields = schema.values(|path| scalar_at(message, body, path));
    let places = places(
        form.bytes(stored),
        form.metadata(form.bytes(stored)),
        fields,
    )?;
    Ok((form, places))
}

/// Finds the attributes in the metadata of an object's bytes.
fn places(bytes: &[u8], metadata: &[u8], values: FieldValues) -> Result<AttributeSpans, WireError> {
    let mut places = PlacesBuilder::new(bytes);
    let mut fields = Fields::new(metadata);
    while let Some((number, content)) = fields.next_field()? {
        let Content::Bytes(bytes) = content else {
            continue;
        };
        match number {
            NAME => places.name(bytes),
            NAMESPACE => places.namespace(bytes),
            UID => places.uid(bytes),
            LABELS => {
                let (key, value) = label(bytes)?;
                places.label(key, value);
            }
            _ => {}
        }
    }
    Ok(places.finish(values))
}

/// Returns a label's key and value.
fn label(entry: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut key, mut value) = (&[][..], &[][..]);
    let mut fields = Fields::new(entry);
    while let Some((number, content)) = fields.next_field()? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => key = bytes,
            (2, Content::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Ok((key, value))
}
