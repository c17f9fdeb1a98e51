//! The events of one watch, in the form that its client asked for.

use std::sync::Arc;

use bytes::Bytes;
use ringwatch::meta::Object;
use ringwatch_registry::Store;

use super::encoder::{Encoder, What};
use super::frame;
use super::table::Tables;
use crate::errors::Failure;
use crate::negotiation::Format;

/// Writes the events of a watch.
#[derive(Debug)]
pub(crate) enum EventEncoder {
    /// As objects, or their metadata. The same bytes for every watch.
    Objects(Encoder),
    /// As tables of one row. Apart, so that a watch of objects stays small.
    Tables(Box<TableEvents>),
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    /// The object came into the selection.
    Added,
    /// The object was selected before the change and is selected after it.
    Modified,
    /// The object left the selection.
    Deleted,
}

/// Writes events as tables.
#[derive(Debug)]
pub(crate) struct TableEvents {
    tables: Tables,
    /// True once the columns have been sent, which come with the first table alone.
    columns_sent: bool,
}

impl EventEncoder {
    /// Creates an encoder that writes events as tables of one row.
    pub(crate) fn tables(tables: Tables) -> Self {
        Self::Tables(Box::new(TableEvents {
            tables,
            columns_sent: false,
        }))
    }

    /// Returns an encoder of the same form, for other watches; `None` for tables, whose form depends on what was sent
    /// before.
    pub(crate) fn shared(&self) -> Option<Self> {
        match self {
            Self::Objects(encoder) => Some(Self::Objects(encoder.clone())),
            Self::Tables(_) => None,
        }
    }

    /// Returns numbers that are equal for encoders of the same objects in the same form; `None` for tables.
    pub(crate) fn class(&self) -> Option<(usize, u32)> {
        match self {
            Self::Objects(encoder) => Some(encoder.class()),
            Self::Tables(_) => None,
        }
    }

    /// Returns the store of the objects.
    pub(crate) fn store(&self) -> &Store {
        match self {
            Self::Objects(encoder) => encoder.store(),
            Self::Tables(events) => events.tables.store(),
        }
    }

    /// Encodes an event about an object.
    ///
    /// # Errors
    /// 500 when the object cannot be converted or written.
    pub(crate) fn event(
        &mut self,
        kind: EventType,
        object: &Arc<Object>,
    ) -> Result<Bytes, Failure> {
        match self {
            Self::Objects(encoder) => encoder.encode(kind.what(), object),
            Self::Tables(events) => events.event(kind, object),
        }
    }

    /// Encodes a bookmark with this revision. `initial_events_end` marks the one that ends the initial events.
    ///
    /// # Errors
    /// 500 when the kind cannot be written.
    pub(crate) fn bookmark(
        &mut self,
        revision: u64,
        initial_events_end: bool,
    ) -> Result<Bytes, Failure> {
        match self {
            Self::Objects(encoder) => encoder.bookmark(revision, initial_events_end),
            Self::Tables(events) => events.bookmark(revision, initial_events_end),
        }
    }

    /// Encodes the `ERROR` event that ends a failed watch, which is no table; empty if not even that can be written.
    pub(crate) fn error(&self, failure: &Failure) -> Bytes {
        match self {
            Self::Objects(encoder) => encoder.error(failure),
            Self::Tables(_) => {
                let status = serde_json::to_vec(failure.status()).unwrap_or_default();
                frame::event(Format::Json, "ERROR", &status).unwrap_or_default()
            }
        }
    }
}

impl EventType {
    fn what(self) -> What {
        match self {
            Self::Added => What::Added,
            Self::Modified => What::Modified,
            Self::Deleted => What::Deleted,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl TableEvents {
    fn event(&mut self, kind: EventType, object: &Arc<Object>) -> Result<Bytes, Failure> {
        let table = self.tables.object_table(object, !self.columns_sent)?;
        self.columns_sent = true;
        frame::event(Format::Json, kind.name(), &table)
    }

    /// Encodes a bookmark as a table with one row, of an object that has only a version. The end of the initial events
    /// is told by the object, which comes whatever was asked for. Follows `asTable` in apiserver's
    /// pkg/endpoints/handlers.
    fn bookmark(&mut self, revision: u64, initial_events_end: bool) -> Result<Bytes, Failure> {
        let resource = self.tables.store().resource();
        let object = frame::bookmark(resource, false, revision, initial_events_end);
        let object = serde_json::from_str(&object).map_err(Failure::internal)?;
        let with_columns = !self.columns_sent;
        let table = if initial_events_end {
            self.tables
                .with_metadata()
                .value_table(&object, with_columns)
        } else {
            self.tables.value_table(&object, with_columns)
        };
        self.columns_sent = true;
        frame::event(Format::Json, "BOOKMARK", &table?)
    }
}
