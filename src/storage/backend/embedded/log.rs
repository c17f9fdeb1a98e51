//! The log, which makes changes durable.

mod disk_file;
mod failure;
mod format_1;
mod inspected_log;
mod memory;
mod page_sums;
#[cfg(test)]
mod recording_log;
mod redb_log;
mod stored_record;
mod tentative_file;

use std::fmt::Debug;
use std::sync::Arc;

pub use disk_file::Disk;
pub(super) use inspected_log::InspectedLog;
pub(super) use memory::MemoryLog;
#[cfg(test)]
pub(super) use recording_log::RecordingLog;
pub(super) use redb_log::{LoadedLog, RedbLog};
pub(super) use stored_record::{StoredRecord, decode};

use super::mvcc::Record;
use crate::storage::backend::{BackendError, LeaseId};

/// The smallest page of redb, in bytes.
const PAGE_BYTES: u64 = 4_096;
/// The overhead of a record in redb in bytes: its revision, and its entry in the page.
const RECORD_OVERHEAD_BYTES: u64 = 32;

/// A store of records by revision, and of leases and the compacted revision beside them.
pub(super) trait LogStore: Send + Debug {
    /// Makes a batch durable, the whole of it or nothing. Blocks until it is.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`]. Whether the batch was written is known when the log has recovered, or is opened
    /// again; until then nothing more may be written.
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError>;

    /// Recovers a log whose last commit failed, and returns its content after a revision. Blocks while everything is
    /// read.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`] if it still cannot be written. Retry later.
    fn recover(&mut self, since: u64) -> Result<RecoveredLog, BackendError>;

    /// Compares the next part of the log with what was written there, in turn. Blocks while that is read.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`] if it differs or cannot be read. Nothing more may be written then until the log has
    /// recovered.
    fn verify(&mut self) -> Result<(), BackendError>;

    /// Returns the size of the log in bytes.
    ///
    /// # Errors
    /// [`BackendError::Other`].
    fn size_bytes(&self) -> Result<u64, BackendError>;

    /// Returns how many bytes its records need: removed ones no longer count.
    fn used_bytes(&self) -> u64;
}

/// The content of a recovered log after a revision.
#[derive(Debug, Default)]
pub(super) struct RecoveredLog {
    /// The records after that revision, in rising order.
    pub(super) records: Vec<Arc<Record>>,
    /// The compacted revision; 0 if nothing is.
    pub(super) compacted: u64,
    /// The leases and their times to live in seconds.
    pub(super) leases: Vec<(LeaseId, i64)>,
}

/// Estimates how many bytes of the file a record of `bytes` takes: a page of redb holds several small records, or one
/// large record alone, in a power-of-two number of pages.
pub(super) fn room(bytes: usize) -> u64 {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    match bytes.saturating_add(RECORD_OVERHEAD_BYTES) {
        small if small <= PAGE_BYTES => small,
        large => large.checked_next_power_of_two().unwrap_or(u64::MAX),
    }
}

/// The changes of one commit, which is atomic.
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
    /// Leases that have expired.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_records_share_pages_and_large_ones_take_powers_of_two() {
        let largest_small = 4_096 - 32;
        assert_eq!(room(100), 132);
        assert_eq!(room(largest_small), 4_096);
        assert_eq!(room(largest_small + 1), 8_192);
        assert_eq!(room(100_000), 131_072);
        assert_eq!(room(usize::MAX), u64::MAX);
    }
}
