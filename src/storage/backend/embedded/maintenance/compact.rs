//! Compaction of a store that nothing serves.

use std::path::Path;

use super::error::MaintenanceError;
use super::status::inspected;
use crate::storage::backend::BackendError;
use crate::storage::backend::embedded::log::{Loaded, LogBatch, LogStore, RedbLog};

/// The most records that one commit removes.
const REMOVALS_PER_COMMIT_MAX: usize = 1_000;

/// The outcome of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The number of records that were removed.
    pub removed_records: u64,
    /// The length of the file before, in bytes.
    pub before_bytes: u64,
    /// The length of the file now, in bytes.
    pub after_bytes: u64,
}

/// Drops the versions that were overwritten or deleted up to a revision, and makes the file as small as its content
/// allows. Interrupted at any point, the store is whole; a compaction of the history that has begun ends with the
/// next start of a server.
///
/// # Errors
/// [`MaintenanceError::Store`] when the revision is compacted already, or is none yet; others when the file cannot be opened
/// or written.
pub fn compact(store: &Path, revision: u64) -> Result<Compaction, MaintenanceError> {
    let failed = |source: BackendError| MaintenanceError::Store {
        path: store.to_owned(),
        source,
    };
    // Opening a log creates a file that is missing.
    drop(inspected(store)?);
    let Loaded {
        mut log,
        mut state,
        mut obsolete,
        refusal,
        ..
    } = RedbLog::open(store)?;
    if let Some(refusal) = refusal {
        return Err(failed(refusal));
    }
    let before_bytes = log.size_bytes().map_err(failed)?;
    obsolete.extend(state.compact(revision).map_err(failed)?);
    drop(state);
    let first = LogBatch {
        compacted: Some(revision),
        ..LogBatch::default()
    };
    log.commit(&first).map_err(failed)?;
    for removed in obsolete.chunks(REMOVALS_PER_COMMIT_MAX) {
        let batch = LogBatch {
            obsolete: removed.to_vec(),
            ..LogBatch::default()
        };
        log.commit(&batch).map_err(failed)?;
    }
    log.shrink()?;
    Ok(Compaction {
        removed_records: obsolete.len() as u64,
        before_bytes,
        after_bytes: log.size_bytes().map_err(failed)?,
    })
}
