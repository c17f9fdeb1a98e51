//! The change of one revision, in memory and as bytes.
//!
//! A record is self-contained: a put has its creation revision and version, since the records before it may be
//! compacted away.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::backend::{Event, EventKind, KeyValue, LeaseId};

/// One version of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Version {
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
    pub(crate) change: Change,
}

/// The change of a revision: one key is written, or one or more are deleted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Put(Arc<Version>),
    Delete(Vec<Arc<str>>),
}

/// The bytes are not a record.
#[derive(Debug, thiserror::Error)]
#[error("revision {revision} cannot be read")]
pub(crate) struct RecordError {
    revision: u64,
}

const TAG_PUT: u8 = 1;
const TAG_DELETE: u8 = 2;

impl Version {
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
            Change::Put(version) => std::slice::from_ref(&version.key),
            Change::Delete(keys) => keys,
        }
    }

    /// Returns the event of one of its keys, as a watch sends it.
    pub(super) fn event(&self, key: &Arc<str>, previous: Option<&Arc<Version>>) -> Event {
        let (kind, kv) = match &self.change {
            Change::Put(version) => (EventKind::Put, version.to_kv()),
            Change::Delete(_) => (EventKind::Delete, self.tombstone(key)),
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

    /// Returns the length of the bytes of [`Record::encode`].
    pub(crate) fn encoded_len(&self) -> usize {
        match &self.change {
            Change::Put(version) => 1 + 4 + version.key.len() + 3 * 8 + version.value.len(),
            Change::Delete(keys) => 1 + keys.iter().map(|key| 4 + key.len()).sum::<usize>(),
        }
    }

    /// Encodes the record without its revision. A put is its tag, the length of the key (u32), the key, the creation
    /// revision, the version and the lease (u64 or i64, 0 for none), and the value; a deletion its tag, then length and
    /// bytes of each key. All numbers are little-endian.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        match &self.change {
            Change::Put(version) => {
                bytes.push(TAG_PUT);
                encode_key(&mut bytes, &version.key);
                bytes.extend_from_slice(&version.create_revision.to_le_bytes());
                bytes.extend_from_slice(&version.version.to_le_bytes());
                let lease = version.lease.map_or(0, |lease| lease.0);
                bytes.extend_from_slice(&lease.to_le_bytes());
                bytes.extend_from_slice(&version.value);
            }
            Change::Delete(keys) => {
                bytes.push(TAG_DELETE);
                for key in keys {
                    encode_key(&mut bytes, key);
                }
            }
        }
        bytes
    }

    /// Decodes the record of a revision.
    ///
    /// # Errors
    /// [`RecordError`] when the bytes are not what [`Record::encode`] makes.
    pub(crate) fn decode(revision: u64, bytes: &[u8]) -> Result<Self, RecordError> {
        let change = match bytes.split_first() {
            Some((&TAG_PUT, rest)) => decode_put(revision, rest),
            Some((&TAG_DELETE, rest)) => decode_delete(rest),
            _ => None,
        };
        let change = change.ok_or(RecordError { revision })?;
        Ok(Self { revision, change })
    }
}

fn encode_key(bytes: &mut Vec<u8>, key: &str) {
    // Requests are far smaller than 4 GiB.
    let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(key.as_bytes());
}

fn decode_put(revision: u64, bytes: &[u8]) -> Option<Change> {
    let (key, rest) = decode_key(bytes)?;
    let (create_revision, rest) = rest.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (lease, value) = rest.split_first_chunk()?;
    let lease = i64::from_le_bytes(*lease);
    Some(Change::Put(Arc::new(Version {
        key,
        value: Bytes::copy_from_slice(value),
        create_revision: u64::from_le_bytes(*create_revision),
        mod_revision: revision,
        version: u64::from_le_bytes(*version),
        lease: (lease != 0).then_some(LeaseId(lease)),
    })))
}

fn decode_delete(mut bytes: &[u8]) -> Option<Change> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let (key, rest) = decode_key(bytes)?;
        keys.push(key);
        bytes = rest;
    }
    (!keys.is_empty()).then_some(Change::Delete(keys))
}

fn decode_key(bytes: &[u8]) -> Option<(Arc<str>, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (key, rest) = rest.split_at_checked(len)?;
    Some((Arc::from(str::from_utf8(key).ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put() -> Record {
        Record {
            revision: 9,
            change: Change::Put(Arc::new(Version {
                key: Arc::from("/registry/pods/a"),
                value: Bytes::from_static(b"value"),
                create_revision: 4,
                mod_revision: 9,
                version: 3,
                lease: Some(LeaseId(77)),
            })),
        }
    }

    fn delete() -> Record {
        let keys = vec![Arc::from("/a"), Arc::from("/ü")];
        Record {
            revision: 10,
            change: Change::Delete(keys),
        }
    }

    #[test]
    fn a_record_survives_its_bytes() {
        for record in [put(), delete()] {
            let bytes = record.encode();
            assert_eq!(bytes.len(), record.encoded_len());
            assert_eq!(Record::decode(record.revision, &bytes).unwrap(), record);
        }
    }

    #[test]
    fn bytes_that_are_cut_off_are_refused() {
        let bytes = put().encode();
        let value_begins = bytes.len() - "value".len();
        for len in 0..value_begins {
            assert!(Record::decode(9, &bytes[..len]).is_err(), "{len}");
        }
        let bytes = delete().encode();
        let first_ends = 1 + 4 + "/a".len();
        for len in (0..bytes.len()).filter(|len| *len != first_ends) {
            assert!(Record::decode(10, &bytes[..len]).is_err(), "{len}");
        }
        assert!(Record::decode(1, &[3, 0, 0, 0, 0]).is_err());
    }
}
