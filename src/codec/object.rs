//! Objects out of what is stored, and what else they can be written as.
//!
//! The first bytes of a stored object tell its form: the magic bytes begin protobuf, everything else is JSON. Protobuf stays
//! as it came, but for the resource version, which belongs to its place; JSON is brought into its canonical layout.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::cut::{Cut, cut};
use super::envelope::{self, MAGIC};
use super::error::{DecodeError, WireError};
use super::member::member;
use super::tables::{Message, kind};
use super::wire::{Content, Fields};
use crate::meta;
use crate::meta::{Attributes, FieldSchema, Item, Labels, Object, ProtobufParts};

/// Field 2 of the envelope.
const MESSAGE: u32 = 2;
/// Field 1 of every object's message.
const METADATA: u32 = 1;
/// Fields of the metadata.
const NAME: u32 = 1;
const NAMESPACE: u32 = 3;
const UID: u32 = 5;
const VERSION: u32 = 6;
const LABELS: u32 = 11;

/// Kind and version of what does not tell them: there are none.
const UNTYPED: (&str, &str) = ("", "");

/// The stored bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It does not begin as protobuf does, and is not JSON of an object.
    #[error(transparent)]
    Json(#[from] meta::DecodeError),
    /// It begins as protobuf does.
    #[error(transparent)]
    Protobuf(#[from] DecodeError),
}

/// Reads what is stored, written at `revision` (0: not stored yet).
///
/// # Errors
/// [`ObjectError`] when it is not an object: of a kind that is unknown, or broken anywhere.
pub fn object(stored: &[u8], revision: u64, schema: &FieldSchema) -> Result<Object, ObjectError> {
    let Some(content) = stored.strip_prefix(&MAGIC) else {
        return Ok(Object::from_json(stored, revision, schema)?);
    };
    // Whatever is wrong deep inside must be told now, and not when somebody wants it as JSON.
    envelope::to_json(stored, UNTYPED)?;
    Ok(protobuf(content, revision, schema)?)
}

/// The object as JSON, with its resource version.
///
/// # Errors
/// [`ObjectError`] never, unless [`object`] did not read it.
pub fn json(object: &Object) -> Result<Bytes, ObjectError> {
    match object.item() {
        Item::Json(_) => Ok(object.bytes().clone()),
        Item::Protobuf(_) => Ok(envelope::to_json(object.bytes(), UNTYPED)?.into()),
    }
}

/// Where in an object's canonical JSON the item of a list begins, after its opening brace.
#[must_use]
pub fn item_at(json: &[u8]) -> usize {
    const METADATA: &[u8] = b"\"metadata\":";
    // Kind and version come before that, in which quotes would be escaped.
    let mut windows = json.windows(METADATA.len());
    windows.position(|it| it == METADATA).unwrap_or(1)
}

/// The object as a tree, with its resource version.
///
/// # Errors
/// [`ObjectError`] when JSON is nested too deeply in a part that reading it did not look at.
pub fn tree(object: &Object) -> Result<Value, ObjectError> {
    match object.item() {
        Item::Json(_) => {
            let tree = serde_json::from_slice(object.bytes());
            Ok(tree.map_err(meta::DecodeError::from)?)
        }
        Item::Protobuf(_) => Ok(envelope::decode(object.bytes(), UNTYPED)?),
    }
}

/// Reads an envelope's content.
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

/// Takes an envelope apart at the version, and puts it together with another one.
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
    let envelope = cut(content, MESSAGE, "raw")?;
    let body = envelope.found.last().copied().unwrap_or_default();
    let object = cut(body, METADATA, "metadata")?;
    // A message that comes in parts is their concatenation.
    let metadata: Cow<'_, [u8]> = match object.found.as_slice() {
        [metadata] => Cow::Borrowed(metadata),
        parts => Cow::Owned(parts.concat()),
    };
    let Cut { below, above, .. } = cut(&metadata, VERSION, "resourceVersion")?;
    let mut attributes = attributes(&metadata)?;
    attributes.fields = schema.values(|path| member(message, body, path));
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

/// Reads the attributes out of the metadata, but for the type's own fields.
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

/// A label's key and value.
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
