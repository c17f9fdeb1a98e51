//! An object is its bytes and the few fields by which it is selected.
//!
//! The bytes are in the form in which the object is stored, [`json`] or [`protobuf`], with the
//! version spliced in. That form is the only one that is always there: others are made for clients
//! that ask for them, and may be forgotten again.

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
#[derive(Clone, Debug)]
pub struct Object {
    /// The stored form, with a resource version unless the revision is 0.
    bytes: Bytes,
    /// Which form that is, and where in it what is.
    form: Form,
    /// The revision that wrote this version; 0 for an object that is not stored (dry-run).
    revision: u64,
    /// The attributes that selectors look at. Shared among versions that differ in their revision alone.
    attributes: Arc<Attributes>,
    /// The encodings of `bytes` for clients.
    encodings: Encodings,
}

/// A form in which objects are stored.
#[derive(Clone, Copy, Debug)]
enum Form {
    Json(json::Layout),
    Protobuf(protobuf::Layout),
}

/// How an object stands in a list of others in the form in which it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// JSON without kind and apiVersion. The opening brace is not part of it: write `{` first.
    Json(&'a [u8]),
    /// The object's message, without its envelope.
    Protobuf(&'a [u8]),
}

/// The bytes are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl Object {
    /// Reads the stored form of an object that was written at `revision`.
    ///
    /// Any JSON will do; what is not canonical is made so.
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

    /// Makes an object of a value, as JSON. A resource version in the value is replaced by
    /// `revision`; revision 0, of what is not stored, leaves none.
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

    /// Puts an object together that was written at `revision`.
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

    /// The same content as of another revision: what a DELETED event carries.
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

    /// The object in the form in which it is stored, with its resource version.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The part of [`Object::bytes`] that is the object in a list.
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        match self.form {
            Form::Json(layout) => Item::Json(&self.bytes[layout.item_at as usize..]),
            Form::Protobuf(layout) => Item::Protobuf(layout.message(&self.bytes)),
        }
    }

    /// The object as it is stored: without a resource version.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        match self.form {
            Form::Json(layout) => json::stored(&self.bytes, layout),
            Form::Protobuf(layout) => protobuf::compose(&layout.parts(&self.bytes), 0).0,
        }
    }

    /// An encoding of the object; made if nobody has made it yet. While it is kept, its cost is in
    /// the sum.
    ///
    /// # Errors
    /// That of `make`.
    pub fn encoding<E>(
        &self,
        key: EncodingKey,
        sum: &EncodedBytes,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Encoded, E> {
        self.encodings.get_or_make(key, sum, make)
    }

    /// Keeps an encoding no longer.
    pub fn forget_encoding(&self, key: EncodingKey) {
        self.encodings.forget(key);
    }

    /// The revision that wrote this version; 0 if it is not stored.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the attributes that selectors look at.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.attributes.namespace
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.attributes.uid
    }
}

/// A place in an object's bytes. An object of 4 GiB is taken by no store.
fn offset(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}
