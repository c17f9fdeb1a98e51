//! A log for tests that records its batches, and fails on demand.

use std::sync::Arc;

use super::{LogBatch, LogStore, RecoveredLog};
use crate::storage::backend::{BackendError, LeaseId};
use crate::sync::Mutex;

/// The commits that a [`RecordingLog`] has seen, and its settings.
#[derive(Default)]
pub(crate) struct Recording {
    /// The revisions of each batch.
    pub(crate) batches: Vec<Vec<u64>>,
    /// The revisions whose records have been removed.
    pub(crate) removed: Vec<u64>,
    /// True if commits fail.
    pub(crate) broken: bool,
    /// The compacted revision, which is found when it recovers.
    pub(crate) compacted: u64,
    /// The leases that are found then, with their times to live in seconds.
    pub(crate) leases: Vec<(LeaseId, i64)>,
    /// Called while a batch is being committed.
    pub(crate) during_commit: Option<Box<dyn FnMut() + Send>>,
}

/// A log that writes nothing.
#[derive(Clone, Default)]
pub(crate) struct RecordingLog(pub(crate) Arc<Mutex<Recording>>);

impl LogStore for RecordingLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        let mut recording = self.0.lock().unwrap();
        let revisions = batch.records.iter().map(|record| record.revision);
        recording.batches.push(revisions.collect());
        if let Some(during_commit) = &mut recording.during_commit {
            during_commit();
        }
        match recording.broken {
            true => Err(BackendError::ReadOnly("the disk is full".to_owned())),
            false => {
                recording.compacted = batch.compacted.unwrap_or(recording.compacted);
                recording.removed.extend(&batch.obsolete);
                Ok(())
            }
        }
    }

    fn recover(&mut self, _since: u64) -> Result<RecoveredLog, BackendError> {
        let recording = self.0.lock().unwrap();
        match recording.broken {
            true => Err(BackendError::ReadOnly("the disk is still full".to_owned())),
            false => Ok(RecoveredLog {
                compacted: recording.compacted,
                leases: recording.leases.clone(),
                ..RecoveredLog::default()
            }),
        }
    }

    fn verify(&mut self) -> Result<(), BackendError> {
        match self.0.lock().unwrap().broken {
            true => Err(BackendError::ReadOnly("the disk is damaged".to_owned())),
            false => Ok(()),
        }
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        Ok(0)
    }

    fn used_bytes(&self) -> u64 {
        0
    }
}

impl std::fmt::Debug for RecordingLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordingLog")
    }
}
