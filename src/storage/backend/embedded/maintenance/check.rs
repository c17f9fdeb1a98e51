//! Checks of whole stores and snapshots.

use std::path::Path;

use super::error::MaintenanceError;
use super::record_checks::{Findings, RecordChecks};
use super::snapshot_reader::{SnapshotReader, verify_seal};
use super::stopped_store;
use crate::storage::backend::{ContentDigest, LeaseId};

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The number of records that were read.
    pub records: u64,
    /// The newest revision.
    pub revision: u64,
    /// The digest of the content at that revision.
    pub digest: ContentDigest,
    /// The violations, each as a line; at most 100.
    pub findings: Vec<String>,
    /// The number of violations besides.
    pub more_findings: u64,
}

impl CheckReport {
    fn new(records: u64, checks: RecordChecks, leases: &[(LeaseId, i64)]) -> Self {
        let (Findings { told, more }, state) = checks.finish(leases);
        Self {
            records,
            revision: state.revision(),
            digest: ContentDigest::of_state(&state),
            findings: told,
            more_findings: more,
        }
    }
}

/// Checks a store that nothing serves: the checksums of all its pages, and every record.
///
/// # Errors
/// [`MaintenanceError`]: nothing can be said about records, since the file is none of a store, or so damaged that they
/// are not found.
pub fn check(store: &Path) -> Result<CheckReport, MaintenanceError> {
    let log = stopped_store::open(store)?;
    let mut checks = RecordChecks::new(log.compacted);
    let mut records = 0;
    log.for_each(|revision, bytes| {
        records += 1;
        checks.add(revision, bytes);
    })?;
    let mut checked = CheckReport::new(records, checks, &log.leases);
    if log.lacks_last_commit {
        let finding = format!(
            "the pages of the last commit are not whole: it was damaged, or a loss of power interrupted it; a server \
             would begin at the one before, revision {}",
            checked.revision
        );
        checked.findings.insert(0, finding);
    }
    Ok(checked)
}

/// Checks a snapshot: the digest at its end, and every record.
///
/// # Errors
/// [`MaintenanceError`]: the file is no snapshot, or cannot be read.
pub fn check_snapshot(path: &Path) -> Result<CheckReport, MaintenanceError> {
    let mut damages = Vec::new();
    let mut note = |outcome: Result<(), MaintenanceError>| match outcome {
        Err(MaintenanceError::DamagedSnapshot { detail, .. }) => {
            damages.push(detail);
            Ok(())
        }
        other => other,
    };
    let mut reader = SnapshotReader::open(path)?;
    note(verify_seal(path))?;
    let mut checks = RecordChecks::new(reader.compacted);
    let mut records = 0;
    loop {
        match reader.next() {
            Ok(Some((revision, bytes))) => {
                records += 1;
                checks.add(revision, &bytes);
            }
            Ok(None) => break,
            Err(error) => {
                note(Err(error))?;
                break;
            }
        }
    }
    let mut checked = CheckReport::new(records, checks, &reader.leases);
    note(reader.verify_end(checked.revision))?;
    checked.findings.splice(0..0, damages);
    Ok(checked)
}
