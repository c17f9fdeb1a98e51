//! A log that keeps nothing but the size that its records would have.

use std::collections::BTreeMap;

use prost::Message;

use super::stored_record::StoredRecord;
use super::{LogBatch, LogStore, RecoveredLog, room};
use crate::storage::backend::BackendError;

/// A log in memory: nothing survives the process.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog {
    /// The size in bytes that the record of each revision would have, by revision.
    sizes: BTreeMap<u64, u64>,
    size_bytes: u64,
}

impl LogStore for MemoryLog {
    fn commit(&mut self, batch: &LogBatch) -> Result<(), BackendError> {
        for record in &batch.records {
            let size = room(StoredRecord::from(&**record).encoded_len());
            self.sizes.insert(record.revision, size);
            self.size_bytes += size;
        }
        for revision in &batch.obsolete {
            self.size_bytes -= self.sizes.remove(revision).unwrap_or(0);
        }
        Ok(())
    }

    /// Commits never fail, so there is nothing to recover.
    fn recover(&mut self, _since: u64) -> Result<RecoveredLog, BackendError> {
        Err(BackendError::Other(
            "a store in memory is not recovered; start again".to_owned(),
        ))
    }

    fn verify(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn size_bytes(&self) -> Result<u64, BackendError> {
        Ok(self.size_bytes)
    }

    fn used_bytes(&self) -> u64 {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::embedded::mvcc::State;

    #[test]
    fn records_take_room_until_they_are_removed() {
        let mut log = MemoryLog::default();
        let mut state = State::new();
        let mut batch = LogBatch::default();
        for value in [vec![0; 100], vec![0; 1_000]] {
            batch
                .records
                .push(state.put("/a", Bytes::from(value), None));
        }
        let sizes = [0, 1].map(|at| room(StoredRecord::from(&*batch.records[at]).encoded_len()));
        log.commit(&batch).expect("a commit");
        assert_eq!(log.used_bytes(), sizes[0] + sizes[1]);
        assert_eq!(log.size_bytes(), Ok(sizes[0] + sizes[1]));
        let removal = LogBatch {
            obsolete: vec![batch.records[0].revision],
            ..LogBatch::default()
        };
        log.commit(&removal).expect("a commit");
        assert_eq!(log.used_bytes(), sizes[1]);
        log.recover(0).expect_err("nothing is kept");
    }
}
