//! A log that keeps nothing but count of its size.

use std::collections::BTreeMap;

use super::{LogBatch, LogStore, Recovered, room};
use crate::storage::backend::BackendError;

/// Nothing survives the process.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog {
    /// How large the record of each revision would be.
    sizes: BTreeMap<u64, u64>,
    size_bytes: u64,
}

impl LogStore for MemoryLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        for record in &batch.records {
            let size = room(record.encoded_len());
            self.sizes.insert(record.revision, size);
            self.size_bytes += size;
        }
        for revision in &batch.obsolete {
            self.size_bytes -= self.sizes.remove(revision).unwrap_or(0);
        }
        Ok(())
    }

    /// Nothing ever fails here.
    fn recover(&mut self, _since: u64) -> Result<Recovered, BackendError> {
        Err(BackendError::Other(
            "a store in memory is not recovered; start again".to_owned(),
        ))
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        Ok(self.size_bytes)
    }

    fn used_bytes(&self) -> u64 {
        self.size_bytes
    }
}
