//! The change of one revision.
//!
//! A record is self-contained: a put has its creation revision and version, since the records before it may be
//! compacted away.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::backend::{Event, EventKind, KeyValue, LeaseId};

/// The estimated bytes of a version beside its key and its value: its record, and its entries in the maps.
const VERSION_BYTES: usize = 200;

/// One version of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyVersion {
    pub(crate) key: Arc<str>,
    pub(crate) value: Bytes,
    pub(crate) create_revision: u64,
    pub(crate) mod_revision: u64,
    /// The number of writes since the key was created, this one included.
    pub(crate) version: u64,
    pub(crate) lease: Option<LeaseId>,
}

/// The change of one revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) revision: u64,
    pub(crate) change: RevisionChange,
}

/// The change of a revision: one key is written, or one or more are deleted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RevisionChange {
    Put(Arc<KeyVersion>),
    Delete(Vec<Arc<str>>),
}

impl KeyVersion {
    /// Returns an estimate of the memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len() + VERSION_BYTES) as u64
    }

    /// Returns the version as a read returns it.
    pub(crate) fn to_kv(&self) -> KeyValue {
        KeyValue {
            value: self.value.clone(),
            ..self.to_key_only()
        }
    }

    /// Returns the version without its value.
    pub(super) fn to_key_only(&self) -> KeyValue {
        KeyValue {
            key: self.key.as_ref().to_owned(),
            value: Bytes::new(),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            lease: self.lease,
        }
    }
}

impl Record {
    /// Returns the keys that it changed.
    pub(super) fn keys(&self) -> &[Arc<str>] {
        match &self.change {
            RevisionChange::Put(version) => std::slice::from_ref(&version.key),
            RevisionChange::Delete(keys) => keys,
        }
    }

    /// Returns the event of one of its keys, as a watch sends it.
    pub(super) fn event(&self, key: &Arc<str>, previous: Option<&Arc<KeyVersion>>) -> Event {
        let (kind, kv) = match &self.change {
            RevisionChange::Put(version) => (EventKind::Put, version.to_kv()),
            RevisionChange::Delete(_) => (EventKind::Delete, self.tombstone(key)),
        };
        Event {
            kind,
            kv,
            previous: previous.map(|version| version.to_kv()),
        }
    }

    fn tombstone(&self, key: &Arc<str>) -> KeyValue {
        KeyValue {
            key: key.as_ref().to_owned(),
            value: Bytes::new(),
            create_revision: 0,
            mod_revision: self.revision,
            version: 0,
            lease: None,
        }
    }
}
