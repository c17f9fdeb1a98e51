//! One pass: comparing all keys, and writing what differs; and the same walk to verify that nothing does.

use std::collections::BTreeMap;

use super::error::CopyError;
use super::merge::{Merge, Pair};
use super::progress::{CopyPhase, CopyProgress};
use super::source::CopySource;
use super::target::{CopyTarget, TargetChange};
use crate::storage::backend::{ContentDigest, ContentHasher, KeyValue, LeaseId};

/// Maximum number of changes that are made together.
const BATCH_CHANGES_MAX: usize = 1_000;
/// The number of bytes of values at which changes are made; the change that reaches it is still among them.
const BATCH_BYTES: usize = 4 << 20;

/// A pass at a revision of the source.
pub(super) struct Pass<'a> {
    source: &'a dyn CopySource,
    target: &'a mut dyn CopyTarget,
    progress: &'a dyn CopyProgress,
    revision: u64,
    changes: Vec<TargetChange>,
    bytes: usize,
    /// The number of changes that were made.
    made: u64,
    /// True for each lease that was granted, false for each that has ended in the source.
    leases: BTreeMap<LeaseId, bool>,
}

/// The outcome of reading a copy back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerifiedCopy {
    /// The number of keys that both have.
    pub(super) keys: u64,
    /// The number of keys whose lease has ended meanwhile.
    pub(super) expired: u64,
    /// The digest of the keys that both have.
    pub(super) digest: ContentDigest,
}

impl<'a> Pass<'a> {
    /// Prepares a pass, for which the target has begun.
    pub(super) fn new(
        source: &'a dyn CopySource,
        target: &'a mut dyn CopyTarget,
        progress: &'a dyn CopyProgress,
        revision: u64,
    ) -> Self {
        Self {
            source,
            target,
            progress,
            revision,
            changes: Vec::new(),
            bytes: 0,
            made: 0,
            leases: BTreeMap::new(),
        }
    }

    /// Makes the target's keys those of the source. Returns the number of changes.
    ///
    /// # Errors
    /// [`CopyError`].
    pub(super) async fn copy(&mut self) -> Result<u64, CopyError> {
        self.begin(CopyPhase::Copy).await?;
        let mut merge = Merge::new(self.revision);
        while let Some(pair) = merge.next(self.source, &*self.target).await? {
            match pair {
                Pair::Wanted(wanted) => {
                    self.put(wanted, None).await?;
                    self.progress.advance(1);
                }
                Pair::Found(found) => self.remove(&found),
                Pair::Both(wanted, found) => {
                    if !self.target.holds(&wanted, &found) {
                        self.put(wanted, Some(found)).await?;
                    }
                    self.progress.advance(1);
                }
            }
            if self.changes.len() >= BATCH_CHANGES_MAX || self.bytes >= BATCH_BYTES {
                self.flush().await?;
            }
        }
        self.flush().await?;
        Ok(self.made)
    }

    /// Reads both sides again and compares them.
    ///
    /// # Errors
    /// [`CopyError::Differs`], or a side cannot be read.
    pub(super) async fn verify(&self) -> Result<VerifiedCopy, CopyError> {
        self.begin(CopyPhase::Verify).await?;
        let mut hasher = ContentHasher::new();
        let (mut keys, mut expired) = (0, 0);
        let mut merge = Merge::new(self.revision);
        while let Some(pair) = merge.next(self.source, &*self.target).await? {
            match pair {
                Pair::Both(wanted, found) if self.target.holds(&wanted, &found) => {
                    match self.target.keeps_revisions() {
                        true => hasher.add(&found),
                        false => hasher.add_without_revisions(&found),
                    }
                    keys += 1;
                }
                Pair::Wanted(wanted) if self.has_expired(&wanted).await? => expired += 1,
                Pair::Wanted(kv) | Pair::Found(kv) | Pair::Both(kv, _) => {
                    return Err(CopyError::Differs { what: kv.key });
                }
            }
            self.progress.advance(1);
        }
        Ok(VerifiedCopy {
            keys,
            expired,
            digest: hasher.finish(),
        })
    }

    async fn begin(&self, phase: CopyPhase) -> Result<(), CopyError> {
        let keys = self.source.keys(self.revision).await;
        self.progress.begin(phase, keys.map_err(CopyError::Source)?);
        Ok(())
    }

    /// Adds the write of a key, or if its lease has ended the removal of what the target has of it.
    async fn put(&mut self, wanted: KeyValue, found: Option<KeyValue>) -> Result<(), CopyError> {
        if wanted.key.contains(char::REPLACEMENT_CHARACTER) {
            return Err(CopyError::NotText { key: wanted.key });
        }
        if let Some(lease) = wanted.lease
            && !self.has_lease(lease).await?
        {
            if let Some(found) = found {
                self.remove(&found);
            }
            return Ok(());
        }
        self.bytes += wanted.value.len();
        self.changes.push(TargetChange::Put {
            wanted,
            replaced: found.map_or(0, |it| it.mod_revision),
        });
        Ok(())
    }

    fn remove(&mut self, found: &KeyValue) {
        self.changes.push(TargetChange::Remove {
            key: found.key.clone(),
            revision: found.mod_revision,
        });
    }

    /// Grants a lease in the target, unless it has ended in the source.
    async fn has_lease(&mut self, lease: LeaseId) -> Result<bool, CopyError> {
        if let Some(known) = self.leases.get(&lease) {
            return Ok(*known);
        }
        let left = self.source.time_to_live(lease).await;
        let left = left.map_err(CopyError::Source)?;
        if let Some(ttl_seconds) = left {
            self.target.grant(lease, ttl_seconds).await?;
        }
        self.leases.insert(lease, left.is_some());
        Ok(left.is_some())
    }

    /// Returns true if a key may be missing in the target, since its lease has ended on either side.
    async fn has_expired(&self, wanted: &KeyValue) -> Result<bool, CopyError> {
        let Some(lease) = wanted.lease else {
            return Ok(false);
        };
        let there = self.target.has_lease(lease).await;
        if !there.map_err(CopyError::Target)? {
            return Ok(true);
        }
        let left = self.source.time_to_live(lease).await;
        Ok(left.map_err(CopyError::Source)?.is_none())
    }

    async fn flush(&mut self) -> Result<(), CopyError> {
        let changes = std::mem::take(&mut self.changes);
        self.bytes = 0;
        if changes.is_empty() {
            return Ok(());
        }
        self.made += changes.len() as u64;
        self.target.apply(changes).await
    }
}
