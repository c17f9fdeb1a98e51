//! A log for tests that records its batches, and fails on demand.

use std::sync::Arc;

use super::{LogBatch, LogStore, Recovered};
use crate::storage::backend::BackendError;
use crate::sync::Mutex;

/// The commits that a [`WitnessLog`] has seen, and its settings.
#[derive(Default)]
pub(crate) struct Witness {
    /// The revisions of each batch.
    pub(crate) batches: Vec<Vec<u64>>,
    /// True if commits fail.
    pub(crate) broken: bool,
    /// Called while a batch is being committed.
    pub(crate) during_commit: Option<Box<dyn FnMut() + Send>>,
}

/// A log that writes nothing.
#[derive(Clone, Default)]
pub(crate) struct WitnessLog(pub(crate) Arc<Mutex<Witness>>);

impl LogStore for WitnessLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        let mut witness = self.0.lock().unwrap();
        let revisions = batch.records.iter().map(|record| record.revision);
        witness.batches.push(revisions.collect());
        if let Some(during_commit) = &mut witness.during_commit {
            during_commit();
        }
        match witness.broken {
            true => Err(BackendError::ReadOnly("the disk is full".to_owned())),
            false => Ok(()),
        }
    }

    fn recover(&mut self, _since: u64) -> Result<Recovered, BackendError> {
        match self.0.lock().unwrap().broken {
            true => Err(BackendError::ReadOnly("the disk is still full".to_owned())),
            false => Ok(Recovered::default()),
        }
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        Ok(0)
    }

    fn used_bytes(&self) -> u64 {
        0
    }
}

impl std::fmt::Debug for WitnessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WitnessLog")
    }
}
