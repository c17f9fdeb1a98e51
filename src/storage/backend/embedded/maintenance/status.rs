//! The status of a store or a snapshot.

use std::fs;
use std::path::Path;

use super::error::MaintenanceError;
use super::snapshot;
use super::stopped_store;
use super::verified_snapshot::{SealedSnapshot, VerifiedSnapshot};
use crate::storage::backend::ContentDigest;
use crate::storage::backend::embedded::mvcc::State;

/// The facts about a store's file or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The newest revision.
    pub revision: u64,
    /// The oldest revision that can be read; 0 before the first compaction.
    pub compacted_revision: u64,
    /// The number of keys that exist.
    pub keys: u64,
    /// The length of the file in bytes.
    pub size_bytes: u64,
    /// The number of bytes of the file that the records need.
    pub used_bytes: u64,
    /// The digest of the content at the newest revision.
    pub digest: ContentDigest,
    /// The format of the file: stores and snapshots count theirs apart.
    pub format: u64,
}

/// Returns the status of a store that nothing serves.
///
/// # Errors
/// [`MaintenanceError`].
pub fn status(store: &Path) -> Result<StoreStatus, MaintenanceError> {
    let log = stopped_store::open(store)?;
    let (state, used_bytes) = log.state()?;
    let sizes = (log.size_bytes()?, used_bytes);
    Ok(StoreStatus::of_state(&state, sizes, log.format))
}

/// Verifies a snapshot, and returns its status.
///
/// # Errors
/// [`MaintenanceError`].
pub fn snapshot_status(path: &Path) -> Result<StoreStatus, MaintenanceError> {
    let VerifiedSnapshot { state, .. } = SealedSnapshot::open(path)?.read(|_, _| Ok(()))?;
    let size = fs::metadata(path).map_err(MaintenanceError::io(path))?;
    let sizes = (size.len(), size.len());
    Ok(StoreStatus::of_state(
        &state,
        sizes,
        snapshot::FORMAT.into(),
    ))
}

impl StoreStatus {
    pub(super) fn of_state(
        state: &State,
        (size_bytes, used_bytes): (u64, u64),
        format: u64,
    ) -> Self {
        Self {
            revision: state.revision(),
            compacted_revision: state.compacted(),
            keys: state.keys() as u64,
            size_bytes,
            used_bytes,
            digest: ContentDigest::of_state(state),
            format,
        }
    }
}
