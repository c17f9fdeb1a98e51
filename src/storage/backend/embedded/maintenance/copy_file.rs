//! The file of a store as the target of a copy. It keeps the revisions of the source.
//!
//! The log has a record for each key, at the revision of the key's last write, which is no other key's. So keys can be
//! written in any order, and what is there is a store at any moment, compacted at the revision R of the pass: up to
//! that a log may have gaps. Beside the keys it has two records until it is whole:
//!
//! - At revision 1, at which no store writes: the marker.
//! - At R: the deletion of a key that was never there, since the record of the compacted revision must exist. It stays
//!   if the source has no key of that revision, and is replaced by the key otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::error::MaintenanceError;
use super::status::status;
use crate::storage::backend::copy::{
    CopyError, CopyProgress, CopyTarget, KeyPage, MARKER_KEY, Marker, Pages, TargetChange,
};
use crate::storage::backend::embedded::log::{LoadedLog, LogBatch, LogStore, RedbLog};
use crate::storage::backend::embedded::mvcc::{
    KeyVersion, REVISION_EMPTY, Record, RevisionChange as RecordChange,
};
use crate::storage::backend::{BackendError, ContentDigest, KeyValue, LeaseId};

/// The key that the record of the newest revision deletes if no key has that revision.
const END_KEY: &str = "ringwatch/end-of-copy";

/// A store's file into which is copied. It must not have the name under which a server would find it until it is whole.
#[derive(Debug)]
pub struct CopyFile {
    path: PathBuf,
    /// `None` once the copy is whole.
    log: Option<RedbLog>,
    /// The keys that are there, the marker among them.
    live: BTreeMap<Arc<str>, Arc<KeyVersion>>,
    /// The key of each revision.
    rows: HashMap<u64, Arc<str>>,
    /// The revision at which the log is compacted, so the newest that was copied; 0 at first.
    compacted: u64,
    leases: BTreeMap<LeaseId, i64>,
    /// Leases that the next commit grants.
    granted: Vec<(LeaseId, i64)>,
}

impl CopyFile {
    /// Opens the file of a copy that is unfinished, or creates it. No other process can open it meanwhile.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub fn open(path: &Path) -> Result<Self, MaintenanceError> {
        Self::over(RedbLog::open(path)?, path)
    }

    fn over(loaded: LoadedLog, path: &Path) -> Result<Self, MaintenanceError> {
        let LoadedLog {
            mut log,
            state,
            obsolete,
            leases,
            refusal,
        } = loaded;
        let failed = |source| MaintenanceError::Store {
            path: path.to_owned(),
            source,
        };
        if let Some(refusal) = refusal {
            return Err(failed(refusal));
        }
        let leftover = LogBatch {
            obsolete,
            ..LogBatch::default()
        };
        if !leftover.is_empty() {
            log.commit(&leftover).map_err(failed)?;
        }
        let live = state.live().map(|it| (Arc::clone(&it.key), Arc::clone(it)));
        let rows = state
            .live()
            .map(|it| (it.mod_revision, Arc::clone(&it.key)));
        Ok(Self {
            path: path.to_owned(),
            log: Some(log),
            live: live.collect(),
            rows: rows.collect(),
            compacted: state.compacted(),
            leases: leases.into_iter().collect(),
            granted: Vec::new(),
        })
    }

    fn commit(&mut self, batch: &LogBatch) -> Result<(), CopyError> {
        let log = self.log.as_mut().ok_or_else(closed)?;
        log.commit(batch).map_err(CopyError::Target)
    }

    /// Takes a version in the place of what is at its key and at its revision, and adds the record to a batch.
    fn put(&mut self, kv: KeyValue, batch: &mut LogBatch) -> Result<(), CopyError> {
        let key: Arc<str> = Arc::from(kv.key);
        let revision = kv.mod_revision;
        self.remove(&key, batch);
        match self.rows.get(&revision) {
            // Keys come in their order, so the source has that one too.
            Some(other) if **other < *key => {
                return Err(CopyError::SharedRevision {
                    first: other.as_ref().to_owned(),
                    second: key.as_ref().to_owned(),
                    revision,
                });
            }
            // Left by an earlier pass; its record is replaced.
            Some(other) => drop(self.live.remove(other)),
            None => {}
        }
        let version = Arc::new(KeyVersion {
            key: Arc::clone(&key),
            value: kv.value,
            create_revision: kv.create_revision,
            mod_revision: revision,
            version: kv.version,
            lease: kv.lease,
        });
        self.rows.insert(revision, Arc::clone(&key));
        self.live.insert(key, Arc::clone(&version));
        let change = RecordChange::Put(version);
        batch.records.push(Arc::new(Record { revision, change }));
        batch.obsolete.retain(|it| *it != revision);
        Ok(())
    }

    /// Removes a key. Its record goes as well, unless another key has taken its revision.
    fn remove(&mut self, key: &str, batch: &mut LogBatch) {
        let Some(version) = self.live.remove(key) else {
            return;
        };
        let revision = version.mod_revision;
        if self.rows.get(&revision).is_some_and(|it| **it == *key) {
            self.rows.remove(&revision);
            batch.obsolete.push(revision);
        }
    }

    /// Removes the marker, and leases that no key has, with one commit. Returns the log, to be closed.
    fn make_whole(&mut self) -> Result<RedbLog, CopyError> {
        let mut batch = LogBatch::default();
        self.remove(MARKER_KEY, &mut batch);
        let used: BTreeSet<_> = self.live.values().filter_map(|it| it.lease).collect();
        let unused = self.leases.keys().filter(|it| !used.contains(it));
        batch.expired = unused.copied().collect();
        self.commit(&batch)?;
        let mut log = self.log.take().ok_or_else(closed)?;
        // It ends with a commit in two phases, after which damage is never taken for an interrupted commit.
        log.shrink().map_err(CopyError::Target)?;
        Ok(log)
    }
}

#[async_trait]
impl Pages for CopyFile {
    async fn page(&self, after: &str, limit: u64, _revision: u64) -> Result<KeyPage, BackendError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let mut versions = self.live.range::<str, _>(after).map(|(_, it)| it);
        Ok(KeyPage {
            keys: versions.by_ref().take(limit).map(|it| it.to_kv()).collect(),
            more: versions.next().is_some(),
        })
    }
}

#[async_trait]
impl CopyTarget for CopyFile {
    fn keeps_revisions(&self) -> bool {
        true
    }

    async fn begin(&mut self, pass: Marker, _progress: &dyn CopyProgress) -> Result<(), CopyError> {
        let revision = pass.revision;
        // A copy without a marker is one that lacked only its name.
        let marker = match self.live.get(MARKER_KEY) {
            Some(found) => pass.next(&found.value)?,
            None => pass,
        };
        if self.compacted > revision {
            return Err(CopyError::WentBack {
                revision,
                copied: self.compacted,
            });
        }
        let mut batch = LogBatch {
            compacted: Some(revision),
            ..LogBatch::default()
        };
        if self.compacted > 0
            && self.compacted < revision
            && !self.rows.contains_key(&self.compacted)
        {
            batch.obsolete.push(self.compacted);
        }
        if revision > REVISION_EMPTY && !self.rows.contains_key(&revision) {
            let change = RecordChange::Delete(vec![Arc::from(END_KEY)]);
            batch.records.push(Arc::new(Record { revision, change }));
        }
        let written = KeyValue {
            key: MARKER_KEY.to_owned(),
            value: Bytes::from(marker.to_text()),
            create_revision: REVISION_EMPTY,
            mod_revision: REVISION_EMPTY,
            version: 1,
            lease: None,
        };
        self.put(written, &mut batch)?;
        self.commit(&batch)?;
        self.compacted = revision;
        Ok(())
    }

    fn holds(&self, wanted: &KeyValue, found: &KeyValue) -> bool {
        wanted == found
    }

    async fn grant(&mut self, lease: LeaseId, ttl_seconds: i64) -> Result<(), CopyError> {
        self.leases.insert(lease, ttl_seconds);
        self.granted.push((lease, ttl_seconds));
        Ok(())
    }

    async fn has_lease(&self, lease: LeaseId) -> Result<bool, BackendError> {
        Ok(self.leases.contains_key(&lease))
    }

    async fn apply(&mut self, changes: Vec<TargetChange>) -> Result<(), CopyError> {
        let mut batch = LogBatch {
            granted: std::mem::take(&mut self.granted),
            ..LogBatch::default()
        };
        for change in changes {
            match change {
                TargetChange::Put { wanted, .. } => self.put(wanted, &mut batch)?,
                TargetChange::Remove { key, .. } => self.remove(&key, &mut batch),
            }
        }
        batch.records.sort_unstable_by_key(|it| it.revision);
        self.commit(&batch)
    }

    /// Makes the store whole, closes it, and reads it from the disk.
    async fn finish(&mut self, digest: ContentDigest) -> Result<u64, CopyError> {
        drop(self.make_whole()?);
        let unreadable = |error: MaintenanceError| BackendError::Corrupt(error.to_string());
        let written = status(&self.path).map_err(|error| CopyError::Target(unreadable(error)))?;
        if written.digest != digest || written.revision != self.compacted {
            let what = format!("revision {}, digest {}", written.revision, written.digest);
            return Err(CopyError::Differs { what });
        }
        Ok(written.revision)
    }
}

/// Returns the error of a copy that is whole already.
fn closed() -> CopyError {
    CopyError::Target(BackendError::Unavailable("the copy is finished".to_owned()))
}

#[cfg(test)]
mod tests {
    use ringwatch_testing::disk::{Disk, Fault, FaultKind};

    use super::*;
    use crate::storage::backend::copy::{CopyPhase, CopySource, prepare};
    use crate::storage::backend::embedded::maintenance::SnapshotSource;
    use crate::storage::backend::embedded::mvcc::State;

    /// More changes of the disk than a copy makes.
    const CHANGES_MAX: u32 = 5_000;

    struct Unseen;

    impl CopyProgress for Unseen {
        fn begin(&self, _phase: CopyPhase, _steps: u64) {}

        fn advance(&self, _steps: u64) {}
    }

    fn opened(disk: &Disk) -> Result<CopyFile, MaintenanceError> {
        let path = Path::new("log");
        CopyFile::over(RedbLog::open_on(path, Box::new(disk.clone()))?, path)
    }

    /// Copies into a disk until the copy is whole.
    async fn copy(source: &SnapshotSource, disk: &Disk) -> Result<(), CopyError> {
        let failed =
            |error: MaintenanceError| CopyError::Target(BackendError::Other(error.to_string()));
        let mut target = opened(disk).map_err(failed)?;
        prepare(source, &mut target, &Unseen).await?;
        target.make_whole().map(drop)
    }

    /// Returns two sources, of which the second is the first after more writes.
    fn sources() -> (State, [SnapshotSource; 2]) {
        let mut state = State::new();
        let put = |state: &mut State, number: u32, length: usize| {
            let lease = (number == 3).then_some(LeaseId(7));
            state.put(
                &format!("/{number}"),
                Bytes::from(vec![b'x'; length]),
                lease,
            );
        };
        for number in 0..8 {
            put(&mut state, number, 90 << 10);
        }
        let source = |state: &State| SnapshotSource::of_state("source", state, &[(LeaseId(7), 60)]);
        let first = source(&state);
        for number in 4..6 {
            put(&mut state, number, 20 << 10);
        }
        state.delete(["/7"]);
        let second = source(&state);
        (state, [first, second])
    }

    #[tokio::test]
    async fn a_loss_of_power_at_any_point_leaves_a_copy_that_goes_on() {
        let (state, [first, second]) = sources();
        let expected = ContentDigest::of_state(&state);
        let prepared = Disk::new(1);
        let mut target = opened(&prepared).expect("a file");
        prepare(&first, &mut target, &Unseen).await.expect("a pass");
        drop(target);
        for original in [Disk::new(2), prepared] {
            let mut losses = 0;
            for after in 0..CHANGES_MAX {
                let disk = original.after_power_loss();
                disk.fail(Fault {
                    after,
                    kind: FaultKind::PowerLoss,
                });
                if copy(&second, &disk).await.is_ok() && !disk.is_off() {
                    break;
                }
                losses += 1;
                disk.power_on();
                copy(&second, &disk).await.expect("the copy goes on");
                let path = Path::new("log");
                let loaded = RedbLog::open_on(path, Box::new(disk)).expect("a store");
                assert_eq!(ContentDigest::of_state(&loaded.state), expected, "{after}");
                assert_eq!(loaded.state.revision(), state.revision(), "{after}");
                assert_eq!(loaded.state.compacted(), state.revision(), "{after}");
                assert_eq!(loaded.leases, [(LeaseId(7), 60)], "{after}");
                assert!(loaded.obsolete.is_empty(), "{after}: {:?}", loaded.obsolete);
            }
            assert!((10..CHANGES_MAX).contains(&losses), "{losses}");
        }
    }

    #[tokio::test]
    async fn two_keys_of_one_revision_are_refused() {
        let disk = Disk::new(1);
        let mut target = opened(&disk).expect("a file");
        let pass = Marker {
            source: "source".to_owned(),
            revision: 9,
            run: 0,
        };
        target.begin(pass, &Unseen).await.expect("a pass");
        let put = |key: &str| TargetChange::Put {
            wanted: KeyValue {
                key: key.to_owned(),
                value: Bytes::new(),
                create_revision: 5,
                mod_revision: 5,
                version: 1,
                lease: None,
            },
            replaced: 0,
        };
        let refused = target.apply(vec![put("/a"), put("/b")]).await;
        let refused = refused.expect_err("one of them has no place");
        assert!(matches!(&refused, CopyError::SharedRevision { first, .. } if first == "/a"));
        let (_, [source, _]) = sources();
        assert_eq!(source.newest().await.expect("a revision"), 9);
    }
}
