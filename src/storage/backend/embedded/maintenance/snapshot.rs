//! Snapshots, and the stream of bytes that keeps one.
//!
//! ```text
//!  magic (16 bytes), format (u32), revision, compacted revision, number of leases, number of records (u64 each)
//!  leases:  id, time to live in seconds (i64 each)
//!  records: revision (u64), length (u32), the record as the log of a store has it
//!  SHA-256 of everything before
//! ```
//!
//! Numbers are little-endian. The records are those that a log would have once everything that can be removed is: of
//! the versions that can be read at the compacted revision, and of all changes from it on. They stand in the order of
//! their revisions, so the same content always makes the same bytes. Nobody takes a stream that ended early for a whole
//! one, since the digest at its end is missing.

use std::path::Path;
use std::sync::Arc;
use std::vec::IntoIter;

use bytes::{Bytes, BytesMut};
use imbl::OrdMap;
use prost::Message;
use sha2::{Digest, Sha256};

use super::error::MaintenanceError;
use super::stopped_store;
use crate::storage::backend::embedded::log::StoredRecord;
use crate::storage::backend::embedded::mvcc::{KeyVersion, Record, RevisionChange, State};
use crate::storage::backend::{ContentDigest, LeaseId};

/// The first bytes of every snapshot.
pub(super) const MAGIC: &[u8; 16] = b"ringwatch.snap\r\n";
/// The format that this program reads and writes.
pub(super) const FORMAT: u32 = 1;
/// The size at which a chunk ends; the record that reaches it is still in it.
const CHUNK_BYTES: usize = 256 << 10;

/// The content of a store at one moment, with the history that it has not compacted. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: State,
    /// The leases and their times to live in seconds.
    leases: OrdMap<LeaseId, i64>,
}

/// The stream of a snapshot, in pieces. Beside the snapshot it takes some bytes for each key, and one piece.
pub struct Chunks {
    snapshot: Snapshot,
    /// The versions older than the history that are still to come.
    older: IntoIter<Arc<KeyVersion>>,
    /// The revision of the history that comes next.
    next: u64,
    hasher: Sha256,
    position: SnapshotPosition,
}

/// The part of the stream that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SnapshotPosition {
    Head,
    Records,
    End,
}

/// Takes a snapshot of a store that nothing serves.
///
/// # Errors
/// [`MaintenanceError`]; the store is not changed.
pub fn snapshot(store: &Path) -> Result<Snapshot, MaintenanceError> {
    let log = stopped_store::open(store)?;
    let (state, _) = log.state()?;
    Ok(Snapshot::new(state, log.leases.into_iter().collect()))
}

impl Snapshot {
    pub(in super::super) fn new(state: State, leases: OrdMap<LeaseId, i64>) -> Self {
        Self { state, leases }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the time to live of a lease in seconds.
    pub(super) fn ttl_seconds(&self, lease: LeaseId) -> Option<i64> {
        self.leases.get(&lease).copied()
    }

    /// Returns the newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.state.revision()
    }

    /// Returns the digest of the content at that revision.
    #[must_use]
    pub fn digest(&self) -> ContentDigest {
        ContentDigest::of_state(&self.state)
    }

    /// Returns the stream of the snapshot. The first piece takes a moment for each key.
    #[must_use]
    pub fn chunks(self) -> Chunks {
        Chunks {
            older: Vec::new().into_iter(),
            next: 0,
            hasher: Sha256::new(),
            position: SnapshotPosition::Head,
            snapshot: self,
        }
    }
}

impl Chunks {
    /// Writes the head and the leases, and finds the records.
    fn begin(&mut self, out: &mut BytesMut) {
        let Snapshot { state, leases } = &self.snapshot;
        let older = state.older_versions();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        let records = older.len() + state.history_len();
        let numbers = [
            state.revision(),
            state.compacted(),
            leases.len() as u64,
            records as u64,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for (lease, ttl_seconds) in leases {
            out.extend_from_slice(&lease.0.to_le_bytes());
            out.extend_from_slice(&ttl_seconds.to_le_bytes());
        }
        self.older = older.into_iter();
        self.position = SnapshotPosition::Records;
    }

    /// Writes records until the chunk is full or there are no more.
    fn add_records(&mut self, out: &mut BytesMut) {
        while out.len() < CHUNK_BYTES {
            let Some(version) = self.older.next() else {
                break;
            };
            let revision = version.mod_revision;
            let change = RevisionChange::Put(version);
            write_record(&Record { revision, change }, out);
        }
        for record in self.snapshot.state.history_from(self.next) {
            if out.len() >= CHUNK_BYTES {
                return;
            }
            write_record(record, out);
            self.next = record.revision + 1;
        }
        if out.len() < CHUNK_BYTES {
            self.position = SnapshotPosition::End;
        }
    }
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.position == SnapshotPosition::End {
            return None;
        }
        let mut out = BytesMut::with_capacity(CHUNK_BYTES);
        if self.position == SnapshotPosition::Head {
            self.begin(&mut out);
        }
        self.add_records(&mut out);
        self.hasher.update(&out);
        if self.position == SnapshotPosition::End {
            let digest = self.hasher.clone().finalize();
            out.extend_from_slice(&digest);
        }
        Some(out.freeze())
    }
}

impl std::fmt::Debug for Chunks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Chunks")
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

fn write_record(record: &Record, out: &mut BytesMut) {
    let stored = StoredRecord::from(record).encode_to_vec();
    // Far below the limit: redb could not keep a longer one either.
    let length = u32::try_from(stored.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&record.revision.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&stored);
}
