//! The file of a store, or a snapshot, as the source of a copy.

use std::path::Path;

use async_trait::async_trait;

use super::error::MaintenanceError;
use super::snapshot::Snapshot;
use super::stopped_store;
use super::verified_snapshot::SealedSnapshot;
use crate::storage::backend::copy::{CopyError, CopySource, KeyPage, Pages};
use crate::storage::backend::embedded::log::InspectedLog;
#[cfg(test)]
use crate::storage::backend::embedded::mvcc::State;
use crate::storage::backend::{BackendError, LeaseId};

/// The content of a store at one revision, its newest.
#[derive(Debug)]
pub struct SnapshotSource {
    name: String,
    snapshot: Snapshot,
    /// Keeps others from opening the store.
    _lock: Option<InspectedLog>,
}

impl SnapshotSource {
    /// Reads a store that nothing serves. No other process can open it while this lives.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn of_store(name: String, store: &Path) -> Result<Self, MaintenanceError> {
        let log = stopped_store::open(store)?;
        let (state, _) = log.state()?;
        let leases = log.leases.iter().copied().collect();
        Ok(Self {
            name,
            snapshot: Snapshot::new(state, leases),
            _lock: Some(log),
        })
    }

    /// Creates a source with the content of a state.
    #[cfg(test)]
    pub(super) fn of_state(name: &str, state: &State, leases: &[(LeaseId, i64)]) -> Self {
        Self {
            name: name.to_owned(),
            snapshot: Snapshot::new(state.clone(), leases.iter().copied().collect()),
            _lock: None,
        }
    }

    /// Reads a snapshot's file.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn of_file(name: String, path: &Path) -> Result<Self, MaintenanceError> {
        let read = SealedSnapshot::open(path)?.read(|_, _| Ok(()))?;
        Ok(Self {
            name,
            snapshot: Snapshot::new(read.state, read.leases.into_iter().collect()),
            _lock: None,
        })
    }
}

#[async_trait]
impl Pages for SnapshotSource {
    async fn page(&self, after: &str, limit: u64, _revision: u64) -> Result<KeyPage, BackendError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut versions = self.snapshot.state().live_after(after);
        Ok(KeyPage {
            keys: versions.by_ref().take(limit).map(|it| it.to_kv()).collect(),
            more: versions.next().is_some(),
        })
    }
}

#[async_trait]
impl CopySource for SnapshotSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn newest(&self) -> Result<u64, CopyError> {
        Ok(self.snapshot.revision())
    }

    async fn keys(&self, _revision: u64) -> Result<u64, BackendError> {
        Ok(self.snapshot.state().keys() as u64)
    }

    /// Returns the whole time: deadlines are not durable.
    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError> {
        Ok(self.snapshot.ttl_seconds(lease))
    }
}
