//! Completes custom resources that are read and were written under another schema: fills in defaults, and drops members
//! that the schema no longer knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::storage::Completion;
use ringwatch_apimachinery::path::text;
use ringwatch_apimachinery::{GroupVersion, numbers};
use serde_json::Value;

use super::schema::StructuralSchema;

/// Completes objects by the schema of the version in which each was written.
#[derive(Debug)]
pub struct SchemaCompletion {
    /// The schemas of the versions, by `apiVersion`.
    schemas: BTreeMap<String, Arc<StructuralSchema>>,
}

impl SchemaCompletion {
    /// Makes the completion of stored objects by these schemas.
    pub(super) fn new(
        schemas: impl Iterator<Item = (GroupVersion, Arc<StructuralSchema>)>,
    ) -> Self {
        Self {
            schemas: schemas
                .map(|(version, schema)| (version.to_string(), schema))
                .collect(),
        }
    }
}

impl SchemaCompletion {
    /// Drops what the schema of an object's version does not know or allow. Nothing gets a default.
    pub(super) fn coerce(&self, object: &mut Value) {
        if let Some(schema) = self.schemas.get(text(object, "apiVersion")) {
            drop(schema.prune(object));
            schema.drop_nulls(object);
        }
    }
}

impl Completion for SchemaCompletion {
    fn complete(&self, object: &mut Value) {
        if let Some(schema) = self.schemas.get(text(object, "apiVersion")) {
            drop(schema.prune(object));
            // Another program may have written it.
            numbers::normalize(object);
            schema.default(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_clients_in_go_cannot_decode_is_not_read() {
        let schema = json!({"type": "object", "properties": {"i": {"type": "integer"}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let version = GroupVersion::new("a.b", "v1");
        let schemas = SchemaCompletion::new([(version, Arc::new(schema))].into_iter());
        let owner = json!({"name": "o", "controller": "yes"});
        let mut object = json!({"apiVersion": "a.b/v1", "i": 1000.0,
            "metadata": {"name": "a", "ownerReferences": [owner]}});
        schemas.complete(&mut object);
        let read = json!({"apiVersion": "a.b/v1", "i": 1000, "metadata": {"name": "a"}});
        assert_eq!(object, read);
    }

    #[test]
    fn what_a_webhook_converts_keeps_its_numbers_and_gets_no_defaults() {
        let schema = json!({"type": "object", "properties": {
            "i": {"type": "integer"}, "f": {"type": "number"}, "d": {"type": "integer", "default": 1}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let version = GroupVersion::new("a.b", "v1");
        let schemas = SchemaCompletion::new([(version, Arc::new(schema))].into_iter());
        let converted = r#"{"apiVersion": "a.b/v1", "i": 1.0, "f": 1e3, "d": null, "odd": 1.0}"#;
        let mut object: Value = serde_json::from_str(converted).expect("an object");
        schemas.coerce(&mut object);
        assert_eq!(
            object.to_string(),
            json!({"apiVersion": "a.b/v1", "i": 1.0, "f": 1000.0, "d": null}).to_string()
        );
    }
}
