//! Where changes are made durable.

mod disk_file;
#[cfg(test)]
mod faulty_disk;
mod memory;
mod redb_log;
mod tentative_file;
#[cfg(test)]
mod witness;

use std::fmt::Debug;
use std::sync::Arc;

#[cfg(test)]
pub(super) use faulty_disk::{Fault, FaultyDisk};
pub(super) use memory::MemoryLog;
pub(super) use redb_log::{Loaded, RedbLog};
#[cfg(test)]
pub(super) use witness::WitnessLog;

use super::mvcc::Record;
use crate::storage::backend::{BackendError, LeaseId};

/// redb's smallest page.
const PAGE_BYTES: u64 = 4_096;
/// The overhead of a record in redb: its revision, and its place in the page.
const RECORD_OVERHEAD_BYTES: u64 = 32;

/// A store of records by revision, and of the little that is needed beside them.
pub(super) trait LogStore: Send + Debug {
    /// Makes a batch durable, the whole of it or nothing. Blocks until it is.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`]. Whether the batch was written shows when the log has recovered,
    /// or is opened again; until then nothing more may be written.
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError>;

    /// Makes a log whose last commit failed take writes again, and tells what it holds that is
    /// newer than a revision. Blocks while everything is read.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`] if it still cannot be written. Try again later.
    fn recover(&mut self, since: u64) -> Result<Recovered, BackendError>;

    /// How much room it takes, in bytes.
    ///
    /// # Errors
    /// [`BackendError::Other`].
    fn size_bytes(&self) -> Result<u64, BackendError>;

    /// How much of that its records need, in bytes: what is removed no longer counts.
    fn used_bytes(&self) -> u64;
}

/// The content of a log that has recovered, as far as it is newer than a revision.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// The records after the revision that was asked for, in rising order.
    pub(super) records: Vec<Arc<Record>>,
    /// The compacted revision; 0 if nothing is.
    pub(super) compacted: u64,
    /// The leases and their times to live in seconds.
    pub(super) leases: Vec<(LeaseId, i64)>,
}

/// About how much of the file a record of so many bytes takes: redb's pages hold several small
/// records, or one large record alone, in a power of two of pages.
pub(super) fn room(bytes: usize) -> u64 {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    match bytes.saturating_add(RECORD_OVERHEAD_BYTES) {
        small if small <= PAGE_BYTES => small,
        large => large.checked_next_power_of_two().unwrap_or(u64::MAX),
    }
}

/// The changes of the log that are made atomically.
#[derive(Debug, Default)]
pub(super) struct LogBatch {
    /// New records, in rising order.
    pub(super) records: Vec<Arc<Record>>,
    /// Revisions whose records nothing needs any more.
    pub(super) obsolete: Vec<u64>,
    /// The new compacted revision.
    pub(super) compacted: Option<u64>,
    /// New leases and their times to live in seconds.
    pub(super) granted: Vec<(LeaseId, i64)>,
    /// Leases that are gone.
    pub(super) expired: Vec<LeaseId>,
}

impl LogBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.obsolete.is_empty()
            && self.compacted.is_none()
            && self.granted.is_empty()
            && self.expired.is_empty()
    }
}
