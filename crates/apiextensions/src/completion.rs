//! Completes custom resources that are read and were written under another schema: fills in defaults, and drops members
//! that the schema no longer knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::storage::Completion;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_apimachinery::path::text;
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
            schema.default(object);
        }
    }
}
