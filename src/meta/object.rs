//! An object: its bytes, and the few attributes by which it is selected.
//!
//! The bytes are the stored form, [`json`] or [`protobuf`], and shared with the store where that keeps them in memory
//! as well. The resource version is not among them: it is spliced in when the object is written to a client
//! ([`versioned`]). The stored form is the only one that is always there: others are made for clients that request
//! them, and may be dropped again.

mod attributes;
mod json;
mod protobuf;
mod versioned;

use bytes::Bytes;
use serde_json::Value;
use smallvec::SmallVec;

#[cfg(test)]
pub(crate) use attributes::OwnedAttributes;
pub use attributes::{
    AttributeSpans, Attributes, FieldPath, FieldSchema, FieldValues, Labels, OwnedLabels,
    PlacesBuilder,
};
pub use json::encode;
pub use protobuf::{ProtobufForm, ProtobufParts};
pub use versioned::VersionedObject;

use super::encodings::{EncodedBytes, EncodedObject, EncodingKey, Encodings};

/// An immutable version of an object.
///
/// ```
/// use ringwatch::meta::{FieldSchema, Object};
/// use serde_json::json;
///
/// let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
/// let object = Object::from_value(&value, 7, &FieldSchema::default())?;
/// assert_eq!((object.name(), object.revision()), ("a", 7));
///
/// // The bytes carry the resource version, the stored form does not.
/// let bytes = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a"}}"#;
/// assert_eq!(&object.bytes()[..], bytes);
/// assert_eq!(&object.stored()[..], br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#);
///
/// // In a list the item follows an opening brace.
/// assert!(object.item().to_bytes().starts_with(b"\"metadata\":{"));
/// # Ok::<(), ringwatch::meta::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Object {
    /// The stored form, without a resource version.
    stored: Bytes,
    /// The encoding, and the offsets in it.
    layout: Layout,
    /// The length of [`Object::item`]. A list tells its own length before its items, whose stored bytes would be read
    /// from memory for that alone.
    item_bytes: u32,
    /// The revision that wrote this version; 0 for an object that is not stored (dry-run).
    revision: u64,
    /// The places of the attributes that selectors look at.
    places: AttributeSpans,
    /// The encodings for clients.
    encodings: Encodings,
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Json(json::Layout),
    Protobuf(protobuf::Layout),
}

/// An encoding in which objects are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredForm {
    /// JSON without white space; its item of a list has no kind and no apiVersion, and no opening brace: write `{`
    /// first.
    Json,
    /// Protobuf in Kubernetes' envelope; its item of a list is the message without the envelope.
    Protobuf,
}

/// An error about bytes that are not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl Object {
    /// Decodes the stored form of an object that was written at `revision`, and shares its bytes.
    ///
    /// Any JSON object is accepted; one that is not canonical is made so, and has bytes of its own.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not a JSON object with kind, apiVersion and metadata.
    pub fn from_json(
        stored: Bytes,
        revision: u64,
        schema: &FieldSchema,
    ) -> Result<Self, DecodeError> {
        let (rewritten, item_at, places) = json::read(&stored, schema)?;
        let layout = Layout::Json(json::Layout { item_at });
        let stored = rewritten.map_or(stored, exact);
        Ok(Self::new(stored, layout, revision, places))
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
        Self::from_json(exact(encode(value)), revision, schema)
    }

    /// Creates an object out of the parts of its stored form, as [`ProtobufForm::new`] has found them, with the
    /// attributes at these places of [`ProtobufForm::bytes`].
    #[doc(hidden)]
    #[must_use]
    pub fn from_protobuf(
        stored: Bytes,
        form: ProtobufForm,
        revision: u64,
        places: AttributeSpans,
    ) -> Self {
        let stored = form.rewritten.map_or(stored, exact);
        let layout = Layout::Protobuf(form.layout);
        Self::new(stored, layout, revision, places)
    }

    fn new(stored: Bytes, layout: Layout, revision: u64, places: AttributeSpans) -> Self {
        Self {
            stored,
            layout,
            item_bytes: 0,
            revision: 0,
            places,
            encodings: Encodings::default(),
        }
        .with_revision(revision)
    }

    fn with_revision(mut self, revision: u64) -> Self {
        self.revision = revision;
        self.item_bytes = offset(self.item().len());
        self
    }

    /// Returns the same content at another revision: the object of a DELETED event.
    #[must_use]
    pub fn at_revision(&self, revision: u64) -> Self {
        self.clone().with_revision(revision)
    }

    /// Returns the object in the encoding in which it is stored, with its resource version.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        if self.revision == 0 {
            return self.stored.clone();
        }
        self.whole().to_bytes()
    }

    /// Returns the object in the encoding in which it is stored, with its resource version.
    #[must_use]
    pub fn whole(&self) -> VersionedObject<'_> {
        match self.layout {
            Layout::Json(layout) => layout.from(0, &self.stored, &self.version()),
            Layout::Protobuf(layout) => layout.whole(&self.stored, &self.version()),
        }
    }

    /// Returns the part of the object that is in a list, as [`StoredForm`] says.
    #[must_use]
    pub fn item(&self) -> VersionedObject<'_> {
        match self.layout {
            Layout::Json(layout) => {
                layout.from(layout.item_at as usize, &self.stored, &self.version())
            }
            Layout::Protobuf(layout) => layout.item(&self.stored, &self.version()),
        }
    }

    /// Returns the length of [`Object::item`], without a look at the stored bytes.
    #[must_use]
    pub fn item_len(&self) -> usize {
        self.item_bytes as usize
    }

    /// Returns the object without its opening brace, if it is stored as JSON; otherwise the same as [`Object::item`].
    #[must_use]
    pub fn item_with_kind(&self) -> VersionedObject<'_> {
        match self.layout {
            Layout::Json(layout) => layout.from(1, &self.stored, &self.version()),
            Layout::Protobuf(_) => self.item(),
        }
    }

    /// Returns the length of [`Object::item_with_kind`], without a look at the stored bytes.
    #[must_use]
    pub fn item_with_kind_len(&self) -> usize {
        match self.layout {
            // After the brace, the kind and the apiVersion come before the item.
            Layout::Json(layout) => self.item_len() + layout.item_at as usize - 1,
            Layout::Protobuf(_) => self.item_len(),
        }
    }

    /// Returns the resource version as text, empty for an object that is not stored.
    fn version(&self) -> SmallVec<[u8; 20]> {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut left = self.revision;
        while left > 0 {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        SmallVec::from_slice(&digits[at..])
    }

    /// Returns the encoding in which the object is stored.
    #[must_use]
    pub fn form(&self) -> StoredForm {
        match self.layout {
            Layout::Json(_) => StoredForm::Json,
            Layout::Protobuf(_) => StoredForm::Protobuf,
        }
    }

    /// Returns the stored form of the object: without a resource version.
    #[must_use]
    pub fn stored(&self) -> &Bytes {
        &self.stored
    }

    /// Returns true if the object is stored as JSON in this API version.
    #[must_use]
    pub fn is_written_in(&self, api_version: &str) -> bool {
        match self.layout {
            Layout::Json(layout) => layout.is_of_version(&self.stored, api_version),
            Layout::Protobuf(_) => false,
        }
    }

    /// Returns the message of an object that is stored as protobuf, without its envelope and without a resource
    /// version.
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        match self.layout {
            Layout::Json(_) => None,
            Layout::Protobuf(layout) => Some(layout.message(&self.stored)),
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
    ) -> Result<EncodedObject, E> {
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
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes::new(&self.stored, &self.places)
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.attributes().namespace()
    }

    /// Returns `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.attributes().name()
    }

    /// Returns `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.attributes().uid()
    }
}

/// Returns bytes without the spare capacity of a vector, since they are kept for long.
fn exact(bytes: Vec<u8>) -> Bytes {
    bytes.into_boxed_slice().into()
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::{AttributeSpans, FieldSchema, Object, ProtobufForm, ProtobufParts};

    #[test]
    fn an_item_has_the_length_that_is_remembered() {
        let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
        let json = Object::from_value(&value, 0, &FieldSchema::default()).expect("an object");
        // With a version of two digits the length of the metadata takes another byte.
        let filling = [7; 117];
        let parts = ProtobufParts {
            head: b"k8s\0",
            before_version: b"before",
            after_version: &filling[..],
            rest: b"rest",
            tail: b"tail",
        };
        let form = ProtobufForm::new(&parts, &[]);
        let stored = Bytes::copy_from_slice(form.bytes(&[]));
        let protobuf = Object::from_protobuf(stored, form, 0, AttributeSpans::default());
        for object in [json, protobuf] {
            for revision in [0, 1, 9, 10, 99, 100, u64::MAX] {
                let object = object.at_revision(revision);
                assert_eq!(object.item_len(), object.item().to_bytes().len());
                let with_kind = object.item_with_kind().to_bytes();
                assert_eq!(object.item_with_kind_len(), with_kind.len());
            }
        }
    }

    /// A server has as many records as objects, beside the stored bytes. With the counts of references it takes 120
    /// bytes, and the allocator gives 128.
    #[test]
    fn the_record_of_an_object_is_small() {
        assert!(size_of::<Object>() <= 104, "{}", size_of::<Object>());
    }
}
