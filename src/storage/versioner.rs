//! The only translator between revisions and the resource versions in objects.
//!
//! A stored object has no version: that is the revision which wrote it. So versions are removed on the way into the store
//! and set on the way out, in whichever form the object is stored.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::StorageMediaType;
use crate::codec::{self, ObjectError};
use crate::meta::{FieldSchema, InvalidResourceVersion, Item, Object, ResourceVersion, encode};

/// Makes of objects that were written while their type was another what they would be now.
pub trait Completion: Debug + Send + Sync {
    /// Returns true if the bytes of an object show that it is complete. Only others are decoded into a tree.
    fn is_complete(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Completes one. One that is complete stays as it is.
    fn complete(&self, object: &mut Value);
}

/// Writes revisions into objects on their way out and takes them away on their way in.
#[derive(Clone, Debug, Default)]
pub struct Versioner {
    schema: FieldSchema,
    /// The form in which objects are written.
    media_type: StorageMediaType,
    /// The completion of objects that are read, for types that change.
    completion: Option<Arc<dyn Completion>>,
}

impl Versioner {
    /// A versioner for objects with these selectable fields, which are written as JSON.
    #[must_use]
    pub fn new(schema: FieldSchema) -> Self {
        Self {
            schema,
            media_type: StorageMediaType::Json,
            completion: None,
        }
    }

    /// The same for objects that are completed when they are read. What is stored stays as it is.
    #[must_use]
    pub fn completing(self, completion: Arc<dyn Completion>) -> Self {
        Self {
            completion: Some(completion),
            ..self
        }
    }

    /// The same for objects that are written in another form.
    #[must_use]
    pub fn writing(self, media_type: StorageMediaType) -> Self {
        Self { media_type, ..self }
    }

    /// An object as it will be stored, without a version: its bytes are those to write. What it
    /// replaces, as that is stored (empty: nothing), may have fields that only newer servers know, which
    /// are kept.
    ///
    /// # Errors
    /// [`ObjectError`] when the value is not an object, so that it could not be read again.
    pub fn prepare_for_storage(
        &self,
        object: &Value,
        replaced: &[u8],
    ) -> Result<Object, ObjectError> {
        let object = without_self_link(object);
        let bytes = bytes_of(&object, self.media_type, replaced);
        codec::object(&bytes, 0, &self.schema)
    }

    /// The object in its stored form, at the revision that wrote it.
    ///
    /// # Errors
    /// [`ObjectError`] when the bytes are not an object.
    pub fn update_object(&self, stored: &[u8], revision: u64) -> Result<Object, ObjectError> {
        let object = codec::object(stored, revision, &self.schema)?;
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
        let media_type = match object.item() {
            Item::Json(_) => StorageMediaType::Json,
            Item::Protobuf(_) => StorageMediaType::Protobuf,
        };
        let bytes = bytes_of(&completed, media_type, object.bytes());
        codec::object(&bytes, object.revision(), &self.schema)
    }

    /// The version that a value carries; `None` if it carries none.
    ///
    /// # Errors
    /// [`InvalidResourceVersion`] when it carries something else.
    pub fn object_resource_version(
        &self,
        object: &Value,
    ) -> Result<Option<ResourceVersion>, InvalidResourceVersion> {
        let text = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let version = ResourceVersion::parse(text.unwrap_or_default())?;
        Ok(version.filter(|version| !version.is_any()))
    }

    /// The selectable fields of the type.
    #[must_use]
    pub fn schema(&self) -> &FieldSchema {
        &self.schema
    }
}

/// An object in a form; what it replaces is in the form in which that is stored.
fn bytes_of(object: &Value, media_type: StorageMediaType, replaced: &[u8]) -> Vec<u8> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = match media_type {
        StorageMediaType::Json => None,
        StorageMediaType::Protobuf => codec::kind(text("apiVersion"), text("kind")),
    };
    match kind {
        Some(kind) => codec::encode_over(kind, object, replaced),
        None => encode(object),
    }
}

/// Nobody sends a self link any more, so that hardly any object is copied for want of it.
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
