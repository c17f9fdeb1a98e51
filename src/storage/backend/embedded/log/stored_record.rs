//! A record as bytes: a message of protobuf, to which fields can be added.
//!
//! The revision is the record's key in the log and not part of it. A reader skips fields that it does not know. So a
//! new field must be one without which a record still means the same; whatever else is new needs a new [`FORMAT`],
//! which older programs refuse.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use super::format_1;
use crate::storage::backend::LeaseId;
use crate::storage::backend::embedded::mvcc::{KeyVersion, Record, RevisionChange};

/// The format that this program writes.
pub(super) const FORMAT: u64 = 2;

/// The oldest format that it reads.
pub(super) const FORMAT_MIN: u64 = 1;

/// The message of a record.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StoredRecord {
    #[prost(oneof = "StoredChange", tags = "1, 2")]
    change: Option<StoredChange>,
}

/// The change of a [`StoredRecord`].
#[derive(Clone, PartialEq, prost::Oneof)]
enum StoredChange {
    #[prost(message, tag = "1")]
    Put(StoredPut),
    #[prost(message, tag = "2")]
    Delete(StoredDelete),
}

/// A version of a key. It is there as a whole, since the records before it may be compacted away.
#[derive(Clone, PartialEq, Message)]
struct StoredPut {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(uint64, tag = "2")]
    create_revision: u64,
    /// The number of writes since the key was created, this one included.
    #[prost(uint64, tag = "3")]
    version: u64,
    /// The lease; 0 for none, as in etcd.
    #[prost(int64, tag = "4")]
    lease: i64,
    #[prost(bytes = "bytes", tag = "5")]
    value: Bytes,
}

/// The keys that a revision deleted, at least one.
#[derive(Clone, PartialEq, Message)]
struct StoredDelete {
    #[prost(string, repeated, tag = "1")]
    keys: Vec<String>,
}

/// The bytes are not a record.
#[derive(Debug, thiserror::Error)]
#[error("revision {revision} cannot be read")]
pub(crate) struct RecordError {
    revision: u64,
}

impl From<&Record> for StoredRecord {
    /// Returns the message of a record, which shares its value.
    fn from(record: &Record) -> Self {
        let change = match &record.change {
            RevisionChange::Put(version) => StoredChange::Put(StoredPut {
                key: version.key.as_ref().to_owned(),
                create_revision: version.create_revision,
                version: version.version,
                lease: version.lease.map_or(0, |lease| lease.0),
                value: version.value.clone(),
            }),
            RevisionChange::Delete(keys) => StoredChange::Delete(StoredDelete {
                keys: keys.iter().map(|key| key.as_ref().to_owned()).collect(),
            }),
        };
        Self {
            change: Some(change),
        }
    }
}

/// Decodes the record of a revision, of this format or format 1.
///
/// # Errors
/// [`RecordError`] when the bytes are neither, or hold no change that is known.
pub(crate) fn decode(revision: u64, bytes: &[u8]) -> Result<Record, RecordError> {
    let change = match bytes.first() {
        Some(&(format_1::TAG_PUT | format_1::TAG_DELETE)) => format_1::decode(revision, bytes),
        _ => StoredRecord::decode(bytes)
            .ok()
            .and_then(|stored| stored.change?.into_change(revision)),
    };
    let change = change.ok_or(RecordError { revision })?;
    Ok(Record { revision, change })
}

impl StoredChange {
    fn into_change(self, revision: u64) -> Option<RevisionChange> {
        match self {
            Self::Put(put) => Some(RevisionChange::Put(Arc::new(KeyVersion {
                key: Arc::from(put.key),
                value: put.value,
                create_revision: put.create_revision,
                mod_revision: revision,
                version: put.version,
                lease: (put.lease != 0).then_some(LeaseId(put.lease)),
            }))),
            Self::Delete(deleted) => {
                let keys: Vec<Arc<str>> = deleted.keys.into_iter().map(Arc::from).collect();
                (!keys.is_empty()).then_some(RevisionChange::Delete(keys))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put() -> Record {
        Record {
            revision: 9,
            change: RevisionChange::Put(Arc::new(KeyVersion {
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
            change: RevisionChange::Delete(keys),
        }
    }

    fn encoded(record: &Record) -> Vec<u8> {
        StoredRecord::from(record).encode_to_vec()
    }

    #[test]
    fn a_record_survives_its_bytes() {
        for record in [put(), delete()] {
            let read = decode(record.revision, &encoded(&record)).expect("a record");
            assert_eq!(read, record);
        }
    }

    /// Numbers and types of fields must never change.
    #[test]
    fn the_bytes_of_a_record_stay_as_they_are() {
        assert_eq!(
            encoded(&put()),
            b"\x0a\x1f\x0a\x10/registry/pods/a\x10\x04\x18\x03\x20\x4d\x2a\x05value"
        );
        assert_eq!(encoded(&delete()), b"\x12\x09\x0a\x02/a\x0a\x03/\xc3\xbc");
    }

    #[test]
    fn the_value_is_not_copied_into_the_message() {
        let record = put();
        let RevisionChange::Put(version) = &record.change else {
            panic!("a put");
        };
        let Some(StoredChange::Put(stored)) = StoredRecord::from(&record).change else {
            panic!("a put");
        };
        assert_eq!(stored.value.as_ptr(), version.value.as_ptr());
    }

    #[test]
    fn unknown_fields_are_skipped() {
        // Field 15 of the record, a number, and field 14 of the put, bytes.
        let mut bytes = encoded(&put());
        bytes[1] += 4;
        bytes.extend_from_slice(b"\x72\x02ok\x78\x07");
        assert_eq!(decode(9, &bytes).expect("a record"), put());
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let record = encoded(&put());
        for len in 0..record.len() {
            assert!(decode(9, &record[..len]).is_err(), "{len}");
        }
        // A deletion of nothing, a change that is not known, a record of format 1 without an end.
        for bytes in [&b"\x12\0"[..], b"\x1a\0", b"\x01\x10"] {
            assert!(decode(9, bytes).is_err(), "{bytes:?}");
        }
    }
}
