//! Encodes objects as rows of a Table, the printer columns that kubectl shows.
//!
//! Rows are encoded for each request and not cached, since they contain ages.
//!
//! ```text
//! {"kind":"Table",...,"metadata":{...},"columnDefinitions":[...],"rows":[{"cells":[...],"object":{...}},...]}
//! ^ head                                                                ^ row
//! ```

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::{Object, json_text};
use ringwatch_registry::Store;
use ringwatch_resources::Printer;
use serde_json::{Value, json};

use super::frame;
use crate::errors::Failure;
use crate::negotiation::{IncludeObject, TableForm};

/// The bytes after the rows.
pub(crate) const TABLE_END: &[u8] = b"]}";

/// Writes tables of a resource's objects.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    store: Arc<Store>,
    form: TableForm,
    /// The clock by which ages are computed.
    clock: Clock,
    printer: Printer,
}

impl Tables {
    /// Tables of the objects of a store.
    pub(crate) fn new(store: Arc<Store>, form: TableForm, clock: Clock) -> Self {
        let printer = Printer::for_resource(store.resource());
        Self {
            store,
            form,
            clock,
            printer,
        }
    }

    /// Tables of objects that are not of the resource's kind.
    pub(crate) fn with_printer(self, printer: Printer) -> Self {
        Self { printer, ..self }
    }

    /// Tables whose rows carry the objects' metadata if they would carry nothing.
    pub(crate) fn with_metadata(&self) -> Self {
        let mut tables = self.clone();
        if tables.form.include == IncludeObject::None {
            tables.form.include = IncludeObject::Metadata;
        }
        tables
    }

    /// Returns the store of the objects.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Encodes an object as a table of one row.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or read.
    pub(crate) fn object_table(
        &self,
        object: &Arc<Object>,
        with_columns: bool,
    ) -> Result<Vec<u8>, Failure> {
        let version = object.revision();
        let metadata = if version == 0 {
            json!({})
        } else {
            json!({"resourceVersion": version.to_string()})
        };
        let mut table = self.head(&metadata, with_columns)?;
        table.extend(self.row(object)?);
        table.extend_from_slice(TABLE_END);
        Ok(table)
    }

    /// Encodes an object that is not stored as it is shown, as a table of one row.
    ///
    /// # Errors
    /// 500 when the object cannot be written.
    pub(crate) fn value_table(
        &self,
        object: &Value,
        with_columns: bool,
    ) -> Result<Vec<u8>, Failure> {
        let version = object.pointer("/metadata/resourceVersion");
        let metadata = version.map_or_else(|| json!({}), |it| json!({"resourceVersion": it}));
        let mut table = self.head(&metadata, with_columns)?;
        table.extend(self.row_of(object, json_text(object).as_bytes())?);
        table.extend_from_slice(TABLE_END);
        Ok(table)
    }

    /// Returns the bytes before the rows of a table with this metadata.
    ///
    /// # Errors
    /// 500 when the columns cannot be written.
    pub(crate) fn head(&self, metadata: &Value, with_columns: bool) -> Result<Vec<u8>, Failure> {
        let columns = if with_columns {
            self.printer.columns().map_err(Failure::internal)?
        } else {
            "null".to_owned()
        };
        let version = self.form.version;
        let head = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{metadata},\
             \"columnDefinitions\":{columns},\"rows\":["
        );
        Ok(head.into_bytes())
    }

    /// Encodes an object as a row.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or read.
    pub(crate) fn row(&self, object: &Arc<Object>) -> Result<Vec<u8>, Failure> {
        let json = codec::json(object).map_err(Failure::internal)?;
        let stored: Value = serde_json::from_slice(&json).map_err(Failure::internal)?;
        if !self.store.converts_objects() {
            return self.row_of(&stored, &json);
        }
        let served = self.store.to_served(Arc::clone(object));
        let served = served.map_err(Failure::internal)?;
        let json = codec::json(&served).map_err(Failure::internal)?;
        self.row_of(&stored, &json)
    }

    /// Encodes a row of an object as it is stored, and as it is served.
    fn row_of(&self, stored: &Value, served: &[u8]) -> Result<Vec<u8>, Failure> {
        let row = self.printer.row(stored, self.clock.wall());
        let mut json = serde_json::to_vec(&row).map_err(Failure::internal)?;
        json.pop();
        json.extend_from_slice(b",\"object\":");
        match self.form.include {
            IncludeObject::None => json.extend_from_slice(b"null"),
            IncludeObject::Object => json.extend_from_slice(served),
            IncludeObject::Metadata => {
                let metadata = frame::partial_metadata(served, self.form.version);
                json.extend(metadata.map_err(Failure::internal)?);
            }
        }
        json.push(b'}');
        Ok(json)
    }
}
