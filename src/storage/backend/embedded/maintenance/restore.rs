//! Making a store out of a snapshot.

use std::path::Path;

use super::error::MaintenanceError;
use super::status::{StoreStatus, status};
use super::verified_snapshot::{SealedSnapshot, VerifiedSnapshot};
use crate::storage::backend::BackendError;
use crate::storage::backend::embedded::log::{LogBatch, LogStore, RedbLog};
use crate::storage::backend::embedded::open_error::OpenError;

/// The most bytes of records in one commit; the record that reaches it is still in it.
const COMMIT_BYTES: usize = 4 << 20;

/// Verifies a snapshot and writes a store of it to a file, which must be new or empty. The file is a store's, but not a
/// whole one, until this returns: give it its name afterwards.
///
/// # Errors
/// [`MaintenanceError`]; the file may have some of the records then.
pub fn restore(snapshot: &Path, store: &Path) -> Result<StoreStatus, MaintenanceError> {
    let sealed = SealedSnapshot::open(snapshot)?;
    let failed = |source: BackendError| MaintenanceError::Store {
        path: store.to_owned(),
        source,
    };
    let mut log = RedbLog::open(store)?.log;
    let mut batch = LogBatch::default();
    let mut bytes_in_batch = 0;
    let read = sealed.read(|record, bytes| {
        batch.records.push(record);
        bytes_in_batch += bytes;
        if bytes_in_batch < COMMIT_BYTES {
            return Ok(());
        }
        bytes_in_batch = 0;
        log.commit(&std::mem::take(&mut batch)).map_err(failed)
    });
    let VerifiedSnapshot { state, leases } = read?;
    let compacted = state.compacted();
    batch.compacted = (compacted > 0).then_some(compacted);
    batch.granted = leases;
    log.commit(&batch).map_err(failed)?;
    // It ends with a commit in two phases, after which damage is never taken for an interrupted commit.
    log.shrink().map_err(failed)?;
    drop(log);
    let written = status(store)?;
    let sizes = (written.size_bytes, written.used_bytes);
    if written != StoreStatus::of_state(&state, sizes, written.format) {
        let detail = "what was written is not what is read".to_owned();
        return Err(OpenError::Damaged {
            path: store.to_owned(),
            detail,
        }
        .into());
    }
    Ok(written)
}
