//! Compaction of a store that nothing serves.

use std::path::Path;

use super::error::MaintenanceError;
use super::stopped_store;
use crate::storage::backend::BackendError;
use crate::storage::backend::embedded::log::{LoadedLog, LogBatch, LogStore, RedbLog};

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
/// [`MaintenanceError::Revision`] when the revision is compacted already, or is none yet; others when the file cannot
/// be opened or written.
pub fn compact(store: &Path, revision: u64) -> Result<Compaction, MaintenanceError> {
    // Opening a log creates a file that is missing.
    drop(stopped_store::open(store)?);
    compact_log(RedbLog::open(store)?, store, revision)
}

/// Compacts a log that is open, and closes it.
fn compact_log(
    loaded: LoadedLog,
    store: &Path,
    revision: u64,
) -> Result<Compaction, MaintenanceError> {
    let failed = |source: BackendError| MaintenanceError::Store {
        path: store.to_owned(),
        source,
    };
    let LoadedLog {
        mut log,
        mut state,
        mut obsolete,
        refusal,
        ..
    } = loaded;
    if let Some(refusal) = refusal {
        return Err(failed(refusal));
    }
    let before_bytes = log.size_bytes().map_err(failed)?;
    let (compacted, newest) = (state.compacted(), state.revision());
    let more = state.compact(revision);
    obsolete.extend(more.map_err(|_| MaintenanceError::Revision {
        path: store.to_owned(),
        revision,
        compacted,
        newest,
    })?);
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
    log.shrink().map_err(failed)?;
    Ok(Compaction {
        removed_records: obsolete.len() as u64,
        before_bytes,
        after_bytes: log.size_bytes().map_err(failed)?,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ringwatch_testing::disk::{Disk, Fault, FaultKind};

    use super::*;
    use crate::storage::backend::ContentDigest;
    use crate::storage::backend::embedded::mvcc::State;

    /// More changes than a compaction makes.
    const CHANGES_MAX: u32 = 5_000;
    const REVISION: u64 = 61;

    fn opened(disk: &Disk) -> LoadedLog {
        RedbLog::open_on(Path::new("log"), Box::new(disk.clone())).expect("a log")
    }

    /// Returns a disk with a store whose keys were written six times, and the digest of the store.
    fn written() -> (Disk, ContentDigest) {
        let disk = Disk::new(1);
        let mut log = opened(&disk).log;
        let mut state = State::new();
        for _ in 0..6 {
            let mut batch = LogBatch::default();
            for number in 0..10 {
                let value = Bytes::from(vec![b'x'; 20 << 10]);
                let record = state.put(&format!("/{number}"), value, None);
                batch.records.push(record);
            }
            log.commit(&batch).expect("a commit");
        }
        assert_eq!(state.revision(), REVISION);
        (disk, ContentDigest::of_state(&state))
    }

    #[test]
    fn a_loss_of_power_at_any_point_leaves_the_content() {
        let (original, digest) = written();
        let mut losses = 0;
        for after in 0..CHANGES_MAX {
            let disk = original.after_power_loss();
            let loaded = opened(&disk);
            disk.fail(Fault {
                after,
                kind: FaultKind::PowerLoss,
            });
            let compacted = compact_log(loaded, Path::new("log"), REVISION);
            if compacted.is_ok() && !disk.is_off() {
                break;
            }
            losses += 1;
            disk.power_on();
            let left = opened(&disk);
            assert_eq!(ContentDigest::of_state(&left.state), digest, "{after}");
            let there = left.state.compacted();
            assert!([0, REVISION].contains(&there), "{after}: {there}");
        }
        assert!((20..CHANGES_MAX).contains(&losses), "{losses}");
    }
}
