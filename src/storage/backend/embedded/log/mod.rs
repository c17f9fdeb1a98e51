//! Where changes are made durable.

mod memory;
mod redb_log;
mod tentative_file;
#[cfg(test)]
mod witness;

use std::fmt::Debug;
use std::sync::Arc;

pub(super) use memory::MemoryLog;
pub(super) use redb_log::{Loaded, RedbLog};
#[cfg(test)]
pub(super) use witness::WitnessLog;

use super::mvcc::Record;
use crate::storage::backend::{BackendError, LeaseId};

/// A store of records by revision, and of the little that is needed beside them.
pub(super) trait LogStore: Send + Debug {
    /// Makes a batch durable, the whole of it or nothing. Blocks until it is.
    ///
    /// # Errors
    /// [`BackendError::ReadOnly`]. Whether the batch was written shows when the log is opened
    /// again; until then nothing more may be written.
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError>;

    /// How much room it takes, in bytes.
    ///
    /// # Errors
    /// [`BackendError::Other`].
    fn size_bytes(&self) -> Result<u64, BackendError>;
}

/// What changes at once.
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
