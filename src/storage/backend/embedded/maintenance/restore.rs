//! Making a store out of a snapshot.

use std::path::Path;

use super::error::MaintenanceError;
use super::record_checks::RecordChecks;
use super::snapshot_reader::{SnapshotReader, verify_seal};
use super::status::{Status, status};
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
pub fn restore(snapshot: &Path, store: &Path) -> Result<Status, MaintenanceError> {
    let mut reader = SnapshotReader::open(snapshot)?;
    verify_seal(snapshot)?;
    let failed = |source: BackendError| MaintenanceError::Store {
        path: store.to_owned(),
        source,
    };
    let mut log = RedbLog::open(store)?.log;
    let mut checks = RecordChecks::new(reader.compacted);
    let mut batch = LogBatch::default();
    let mut bytes_in_batch = 0;
    while let Some((revision, bytes)) = reader.next()? {
        batch.records.extend(checks.add(revision, &bytes));
        bytes_in_batch += bytes.len();
        if bytes_in_batch >= COMMIT_BYTES {
            log.commit(&batch).map_err(failed)?;
            batch = LogBatch::default();
            bytes_in_batch = 0;
        }
    }
    let (findings, state) = checks.finish(&reader.leases);
    if let Some(finding) = findings.told.into_iter().next() {
        return Err(MaintenanceError::damaged(snapshot, finding));
    }
    reader.verify_end(state.revision())?;
    batch.compacted = (reader.compacted > 0).then_some(reader.compacted);
    batch.granted = reader.leases;
    log.commit(&batch).map_err(failed)?;
    // It ends with a commit in two phases, after which damage is never taken for an interrupted commit.
    log.shrink().map_err(failed)?;
    drop(log);
    let written = status(store)?;
    let sizes = (written.size_bytes, written.used_bytes);
    if written != Status::of_state(&state, sizes, written.format) {
        let detail = "what was written is not what is read".to_owned();
        return Err(OpenError::Damaged {
            path: store.to_owned(),
            detail,
        }
        .into());
    }
    Ok(written)
}
