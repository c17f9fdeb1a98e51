//! The only place that converts between revisions and the resource versions in objects.
//!
//! A stored object has no resource version: that is the revision which wrote it. So versions are removed before an
//! object is stored and set when it is read, in whichever encoding it is stored.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::StorageMediaType;
use crate::codec::{self, ObjectError};
use crate::meta::{
    FieldSchema, InvalidResourceVersion, Object, ResourceVersion, StoredForm, encode,
};

/// Completes objects that were written under an earlier definition of their type, such as a custom resource with new
/// defaults.
pub trait Completion: Debug + Send + Sync {
    /// Returns true if the bytes of an object show that it is complete. Only other objects are decoded into a tree.
    fn is_complete(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Completes an object. One that is complete stays as it is.
    fn complete(&self, object: &mut Value);
}

/// Sets resource versions in objects that are read, and removes them from objects that are stored.
///
/// ```
/// use ringwatch::meta::FieldSchema;
/// use ringwatch::storage::{StorageMediaType, Versioner};
/// use serde_json::json;
///
/// let versioner = Versioner::new(FieldSchema::default()).writing(StorageMediaType::Protobuf);
/// let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
///
/// // Nothing is replaced. The stored form has no resource version; the revision that wrote it is that.
/// let stored = versioner.prepare_for_storage(&object, b"")?;
/// assert!(stored.stored().starts_with(b"k8s\0"));
/// let read = versioner.update_object(stored.stored().clone(), 7)?;
/// assert_eq!((read.name(), read.revision()), ("a", 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Versioner {
    schema: FieldSchema,
    /// The encoding in which objects are written.
    media_type: StorageMediaType,
    /// The completion of objects that are read, for types whose definition may change.
    completion: Option<Arc<dyn Completion>>,
}

impl Versioner {
    /// Creates a versioner for objects with these selectable fields, which are written as JSON.
    #[must_use]
    pub fn new(schema: FieldSchema) -> Self {
        Self {
            schema,
            media_type: StorageMediaType::Json,
            completion: None,
        }
    }

    /// Returns this versioner with a completion of the objects that are read. Stored objects are not changed.
    #[must_use]
    pub fn completing(self, completion: Arc<dyn Completion>) -> Self {
        Self {
            completion: Some(completion),
            ..self
        }
    }

    /// Returns this versioner with another encoding of the objects that are written.
    #[must_use]
    pub fn writing(self, media_type: StorageMediaType) -> Self {
        Self { media_type, ..self }
    }

    /// Returns an object as it will be stored, without a resource version: its stored form is to be written. `replaced`
    /// is the stored form of the object that it replaces (empty if none), whose fields that only newer servers know are
    /// kept.
    ///
    /// # Errors
    /// [`ObjectError`] when the value is not an object and could not be read again.
    pub fn prepare_for_storage(
        &self,
        object: &Value,
        replaced: &[u8],
    ) -> Result<Object, ObjectError> {
        let object = without_self_link(object);
        let bytes = bytes_of(&object, self.media_type, replaced);
        codec::object_encoded(bytes, 0, &self.schema)
    }

    /// Returns an object as the answer to a write that is not done has it: with its self link, which is not stored.
    ///
    /// # Errors
    /// [`ObjectError`] when the value is not an object and could not be read again.
    pub fn preview(&self, object: &Value) -> Result<Object, ObjectError> {
        let bytes = bytes_of(object, self.media_type, &[]);
        codec::object_encoded(bytes, 0, &self.schema)
    }

    /// Reads the stored form of an object, whose bytes the object shares, with the revision that wrote it.
    ///
    /// # Errors
    /// [`ObjectError`] when the bytes are not an object.
    pub fn update_object(&self, stored: Bytes, revision: u64) -> Result<Object, ObjectError> {
        let object = codec::object_sharing(stored, revision, &self.schema)?;
        match &self.completion {
            Some(completion) => self.completed(object, completion.as_ref()),
            None => Ok(object),
        }
    }

    fn completed(
        &self,
        object: Object,
        completion: &dyn Completion,
    ) -> Result<Object, ObjectError> {
        if completion.is_complete(&object) {
            return Ok(object);
        }
        let stored = codec::tree(&object)?;
        let mut completed = stored.clone();
        completion.complete(&mut completed);
        if completed == stored {
            return Ok(object);
        }
        let media_type = match object.form() {
            StoredForm::Json => StorageMediaType::Json,
            StoredForm::Protobuf => StorageMediaType::Protobuf,
        };
        let bytes = bytes_of(&completed, media_type, object.stored());
        codec::object_encoded(bytes, object.revision(), &self.schema)
    }

    /// Returns the resource version of an object; `None` if it has none.
    ///
    /// # Errors
    /// [`InvalidResourceVersion`] when it is not a number.
    pub fn object_resource_version(
        &self,
        object: &Value,
    ) -> Result<Option<ResourceVersion>, InvalidResourceVersion> {
        let text = object["metadata"]["resourceVersion"].as_str();
        let version = ResourceVersion::parse(text.unwrap_or_default())?;
        Ok(version.filter(|version| !version.is_any()))
    }

    /// Returns the selectable fields of the type.
    #[must_use]
    pub fn schema(&self) -> &FieldSchema {
        &self.schema
    }
}

/// Returns the encoding of an object. `replaced` is the stored form of the object that it replaces, in either encoding.
fn bytes_of(object: &Value, media_type: StorageMediaType, replaced: &[u8]) -> Bytes {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = match media_type {
        StorageMediaType::Json => None,
        StorageMediaType::Protobuf => codec::kind(text("apiVersion"), text("kind")),
    };
    let bytes = match kind {
        Some(kind) => codec::encode_over(kind, object, replaced),
        None => encode(object),
    };
    // They are kept for long, so their spare capacity is freed.
    bytes.into_boxed_slice().into()
}

/// Hardly any object has a self link any more, so hardly any is copied.
fn without_self_link(object: &Value) -> Cow<'_, Value> {
    let link = |metadata: &Value| metadata.get("selfLink").is_some();
    if !object.get("metadata").is_some_and(link) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.map(|metadata| metadata.remove("selfLink"));
    Cow::Owned(object)
}
