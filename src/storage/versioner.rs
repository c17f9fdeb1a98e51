//! The only translator between revisions and the resource versions in objects.

use serde_json::Value;

use crate::meta::{
    DecodeError, FieldSchema, InvalidResourceVersion, Object, ResourceVersion, encode,
};

/// Writes revisions into objects on their way out and takes them away on their way in.
#[derive(Clone, Debug, Default)]
pub struct Versioner {
    schema: FieldSchema,
}

impl Versioner {
    /// A versioner for objects with these selectable fields.
    #[must_use]
    pub fn new(schema: FieldSchema) -> Self {
        Self { schema }
    }

    /// The stored form of an object, without its resource version.
    #[must_use]
    pub fn prepare_for_storage(&self, object: &Value) -> Vec<u8> {
        encode(object)
    }

    /// The object in its stored form, at the revision that wrote it.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not an object.
    pub fn update_object(&self, stored: &[u8], revision: u64) -> Result<Object, DecodeError> {
        Object::decode(stored, revision, &self.schema)
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
