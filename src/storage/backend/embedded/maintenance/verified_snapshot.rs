//! Reading a snapshot that has to be right.

use std::path::Path;
use std::sync::Arc;

use super::error::MaintenanceError;
use super::record_checks::RecordChecks;
use super::snapshot_reader::{SnapshotReader, verify_seal};
use crate::storage::backend::LeaseId;
use crate::storage::backend::embedded::mvcc::{Record, State};

/// A snapshot whose digest is right.
#[derive(Debug)]
pub(super) struct SealedSnapshot<'a> {
    reader: SnapshotReader,
    path: &'a Path,
}

/// The content of a snapshot in which nothing is wrong.
#[derive(Debug)]
pub(super) struct VerifiedSnapshot {
    /// The state that its records add up to.
    pub(super) state: State,
    /// The leases and their times to live in seconds.
    pub(super) leases: Vec<(LeaseId, i64)>,
}

impl<'a> SealedSnapshot<'a> {
    /// Opens a snapshot and verifies its digest.
    ///
    /// # Errors
    /// [`MaintenanceError`]: the file is no whole snapshot, has another format, or cannot be read.
    pub(super) fn open(path: &'a Path) -> Result<Self, MaintenanceError> {
        let reader = SnapshotReader::open(path)?;
        verify_seal(path)?;
        Ok(Self { reader, path })
    }

    /// Reads the records, and calls `each` with every one and the number of its bytes.
    ///
    /// # Errors
    /// [`MaintenanceError::DamagedSnapshot`], which may come after some or all of the records, or the error of `each`.
    pub(super) fn read(
        mut self,
        mut each: impl FnMut(Arc<Record>, usize) -> Result<(), MaintenanceError>,
    ) -> Result<VerifiedSnapshot, MaintenanceError> {
        let mut checks = RecordChecks::new(self.reader.compacted);
        while let Some((revision, bytes)) = self.reader.next()? {
            if let Some(record) = checks.add(revision, &bytes) {
                each(record, bytes.len())?;
            }
        }
        let (findings, state) = checks.finish(&self.reader.leases);
        if let Some(finding) = findings.told.into_iter().next() {
            return Err(MaintenanceError::damaged(self.path, finding));
        }
        self.reader.verify_end(state.revision())?;
        Ok(VerifiedSnapshot {
            state,
            leases: self.reader.leases,
        })
    }
}
