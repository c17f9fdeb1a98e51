//! An object: its bytes, and the few attributes by which it is selected.
//!
//! The bytes are in the encoding in which the object is stored, [`json`] or [`protobuf`], with the resource version
//! spliced in. That encoding is the only one that is always there: others are made for clients that request them, and
//! may be dropped again.

mod attributes;
mod json;
mod protobuf;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

pub use attributes::{Attributes, FieldPath, FieldSchema, FieldValues, Labels};
pub use json::encode;
pub use protobuf::ProtobufParts;

use super::encodings::{Encoded, EncodedBytes, EncodingKey, Encodings};

/// An immutable version of an object.
///
/// ```
/// use ringwatch::meta::{FieldSchema, Item, Object};
/// use serde_json::json;
///
/// let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
/// let object = Object::from_value(&value, 7, &FieldSchema::default())?;
/// assert_eq!((object.name(), object.revision()), ("a", 7));
///
/// // The bytes carry the resource version, the stored form does not.
/// let bytes = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a"}}"#;
/// assert_eq!(&object.bytes()[..], bytes);
/// assert_eq!(object.stored(), br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#);
///
/// // In a list the item follows an opening brace.
/// assert!(matches!(object.item(), Item::Json(item) if item.starts_with(b"\"metadata\":{")));
/// # Ok::<(), ringwatch::meta::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Object {
    /// The stored form, with a resource version unless the revision is 0.
    bytes: Bytes,
    /// The encoding, and the offsets in it.
    form: Form,
    /// The revision that wrote this version; 0 for an object that is not stored (dry-run).
    revision: u64,
    /// The attributes that selectors look at. Shared among versions that differ in their revision alone.
    attributes: Arc<Attributes>,
    /// The encodings of `bytes` for clients.
    encodings: Encodings,
}

/// An encoding in which objects are stored.
#[derive(Clone, Copy, Debug)]
enum Form {
    Json(json::Layout),
    Protobuf(protobuf::Layout),
}

/// An item of a list, in the encoding in which the object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// JSON without kind and apiVersion. The opening brace is not part of it: write `{` first.
    Json(&'a [u8]),
    /// The object's message, without its envelope.
    Protobuf(&'a [u8]),
}

/// An error about bytes that are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl Object {
    /// Decodes the stored form of an object that was written at `revision`.
    ///
    /// Any JSON object is accepted; one that is not canonical is made so.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not a JSON object with kind, apiVersion and metadata.
    pub fn from_json(
        stored: &[u8],
        revision: u64,
        schema: &FieldSchema,
    ) -> Result<Self, DecodeError> {
        let (stored, item_at, attributes) = json::read(stored, schema)?;
        let (json, layout) = json::splice(&stored, item_at, revision);
        Ok(Self::new(json, Form::Json(layout), revision, attributes))
    }

    /// Creates an object from a value, as JSON. A resource version in the value is replaced by `revision`; revision 0,
    /// that of an object which is not stored, leaves none.
    ///
    /// # Errors
    /// [`DecodeError`] as [`Object::from_json`].
    pub fn from_value(
        value: &Value,
        revision: u64,
        schema: &FieldSchema,
    ) -> Result<Self, DecodeError> {
        Self::from_json(&encode(value), revision, schema)
    }

    /// Assembles an object that was written at `revision`.
    #[must_use]
    pub fn from_protobuf(parts: &ProtobufParts<'_>, revision: u64, attributes: Attributes) -> Self {
        let (bytes, layout) = protobuf::compose(parts, revision);
        Self::new(bytes, Form::Protobuf(layout), revision, attributes)
    }

    fn new(
        bytes: Vec<u8>,
        form: Form,
        revision: u64,
        attributes: impl Into<Arc<Attributes>>,
    ) -> Self {
        Self {
            bytes: bytes.into(),
            form,
            revision,
            attributes: attributes.into(),
            encodings: Encodings::default(),
        }
    }

    /// Returns the same content at another revision: the object of a DELETED event.
    #[must_use]
    pub fn at_revision(&self, revision: u64) -> Self {
        let (bytes, form) = match self.form {
            Form::Json(layout) => {
                let stored = json::stored(&self.bytes, layout);
                let (bytes, layout) = json::splice(&stored, layout.item_at as usize, revision);
                (bytes, Form::Json(layout))
            }
            Form::Protobuf(layout) => {
                let (bytes, layout) = protobuf::compose(&layout.parts(&self.bytes), revision);
                (bytes, Form::Protobuf(layout))
            }
        };
        Self::new(bytes, form, revision, Arc::clone(&self.attributes))
    }

    /// Returns the object in the encoding in which it is stored, with its resource version.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the part of [`Object::bytes`] that is the object in a list.
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        match self.form {
            Form::Json(layout) => Item::Json(&self.bytes[layout.item_at as usize..]),
            Form::Protobuf(layout) => Item::Protobuf(layout.message(&self.bytes)),
        }
    }

    /// Returns the stored form of the object: without a resource version.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        match self.form {
            Form::Json(layout) => json::stored(&self.bytes, layout),
            Form::Protobuf(layout) => protobuf::compose(&layout.parts(&self.bytes), 0).0,
        }
    }

    /// Returns an encoding of the object, made by `make` if it is not cached. Its bytes are counted in `sum` while it
    /// is.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn encoding<E>(
        &self,
        key: EncodingKey,
        sum: &EncodedBytes,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Encoded, E> {
        self.encodings.get_or_make(key, sum, make)
    }

    /// Removes an encoding from the cache.
    pub fn forget_encoding(&self, key: EncodingKey) {
        self.encodings.forget(key);
    }

    /// Returns the revision that wrote this version; 0 if it is not stored.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the attributes that selectors look at.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.attributes.namespace
    }

    /// Returns `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// Returns `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.attributes.uid
    }
}

/// Converts an offset in an object's bytes. No store accepts an object of 4 GiB.
fn offset(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}
