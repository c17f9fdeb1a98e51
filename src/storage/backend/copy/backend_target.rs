//! A backend as a target: it has revisions of its own, which are raised past the source's.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::error::CopyError;
use super::leases::NumberedLeases;
use super::marker::{MARKER_KEY, Marker};
use super::pages::{KeyPage, Pages, count, page_of};
use super::progress::{CopyPhase, CopyProgress};
use super::target::{CopyTarget, TargetChange};
use crate::storage::backend::{
    BackendError, Compare, ContentDigest, KeyValue, LeaseId, Op, RangeRequest, Txn, TxnResponse,
};

/// Maximum number of writes that are sent and not answered.
const WRITES_IN_FLIGHT_MAX: usize = 128;
/// The number of writes that raise the revision between two compactions, which drop them.
const RAISES_PER_COMPACTION: u64 = 50_000;
/// The least number of revisions between the newest of the source and the one at which the target is compacted: a watch
/// of a client that has seen the first begins one after it, and must find that compacted.
const DISTANCE_MIN: u64 = 2;

/// A backend that is copied into.
///
/// Several processes can use a backend, so a run may be held, such as by a suspended laptop, while another makes the
/// copy whole and a server writes to it. A run therefore writes its number into the marker as it begins, which the run
/// before it notices: it looks at the marker before each batch of changes and before the end, and never writes it anew
/// once it is gone. One batch remains open to such a run: its writes compare the revisions of their keys alone.
#[derive(Debug)]
pub struct BackendTarget {
    backend: Arc<dyn NumberedLeases>,
    /// The marker of the pass, as this run wrote it.
    marker: Option<Marker>,
}

impl BackendTarget {
    /// Creates a target over a store without keys or with an unfinished copy.
    #[must_use]
    pub fn new(backend: Arc<dyn NumberedLeases>) -> Self {
        Self {
            backend,
            marker: None,
        }
    }

    /// Returns the newest revision of the source of this pass. Nothing that is written may have it or an older one.
    fn source_revision(&self) -> u64 {
        self.marker.as_ref().map_or(u64::MAX, |it| it.revision)
    }

    /// Reads the key of the marker. Returns it, and the newest revision.
    async fn read_marker(&self) -> Result<(Option<KeyValue>, u64), CopyError> {
        let read = self.backend.range(RangeRequest::key(MARKER_KEY)).await;
        let read = read.map_err(CopyError::Target)?;
        Ok((read.kvs.into_iter().next(), read.revision))
    }

    /// Reads the key of the marker, and the newest revision.
    ///
    /// # Errors
    /// [`CopyError::TargetWritten`] if another run has begun, or has made the copy whole.
    async fn own_marker(&self) -> Result<(KeyValue, u64), CopyError> {
        let (found, revision) = self.read_marker().await?;
        let own = self.marker.as_ref().map(Marker::to_text);
        let is_own = |it: &KeyValue| own.is_some_and(|own| own.as_bytes() == it.value);
        match found.filter(is_own) {
            Some(found) => Ok((found, revision)),
            None => Err(written_by_others(MARKER_KEY)),
        }
    }

    /// Writes the marker if the key was last written at a revision. Returns the revision of the write.
    async fn write_marker(&self, marker: &Marker, written: u64) -> Result<u64, CopyError> {
        let compare = Compare::ModRevision(MARKER_KEY.to_owned(), written);
        let then = put(MARKER_KEY, marker.to_text().into(), None);
        let response = self.txn(MARKER_KEY, compare, then).await?;
        accepted(MARKER_KEY, &response)?;
        Ok(response.revision)
    }

    /// Raises the store's revision to at least `goal` by writes of the marker, which are compacted.
    async fn raise(
        &self,
        marker: &Marker,
        mut revision: u64,
        goal: u64,
        progress: &dyn CopyProgress,
    ) -> Result<(), CopyError> {
        let value = Bytes::from(marker.to_text());
        if revision < goal {
            progress.begin(CopyPhase::Raise, goal - revision);
        }
        while revision < goal {
            let writes = (goal - revision).min(RAISES_PER_COMPACTION);
            let raised = stream::iter(0..writes)
                .map(|_| self.write_again(value.clone()))
                .buffer_unordered(WRITES_IN_FLIGHT_MAX)
                .try_fold(revision, |newest, written| {
                    progress.advance(1);
                    future::ready(Ok(newest.max(written)))
                });
            revision = raised.await?;
            self.compact(revision).await?;
        }
        Ok(())
    }

    async fn compact(&self, revision: u64) -> Result<(), CopyError> {
        match self.backend.compact(revision).await {
            Ok(()) | Err(BackendError::Compacted { .. }) => Ok(()),
            Err(error) => Err(CopyError::Target(error)),
        }
    }

    /// Returns an error if a store whose marker was just written for the first time has other keys: they were written
    /// after it was found empty. Removes the marker then.
    async fn refuse_other_keys(&self, written: u64) -> Result<(), CopyError> {
        let keys = count(&*self.backend, 0).await.map_err(CopyError::Target)?;
        // The marker is one of them.
        let keys = keys.saturating_sub(1);
        if keys == 0 {
            return Ok(());
        }
        self.remove_marker(written).await?;
        Err(CopyError::NotEmpty { keys })
    }

    /// Removes the marker if the key was last written at a revision. Returns the revision of the removal.
    async fn remove_marker(&self, written: u64) -> Result<u64, CopyError> {
        let compare = Compare::ModRevision(MARKER_KEY.to_owned(), written);
        let response = self.txn(MARKER_KEY, compare, delete(MARKER_KEY)).await?;
        accepted(MARKER_KEY, &response)?;
        Ok(response.revision)
    }

    /// Writes the marker if it is there, and returns the revision of that.
    async fn write_again(&self, value: Bytes) -> Result<u64, CopyError> {
        let txn = Txn {
            compare: Compare::Version(MARKER_KEY.to_owned(), 0),
            then: get(MARKER_KEY),
            otherwise: Some(put(MARKER_KEY, value, None)),
        };
        let response = self.send(MARKER_KEY, txn).await?;
        match response.succeeded {
            true => Err(written_by_others(MARKER_KEY)),
            false => Ok(response.revision),
        }
    }

    /// Writes a key if the condition holds, and reads it otherwise.
    async fn txn(&self, key: &str, compare: Compare, then: Op) -> Result<TxnResponse, CopyError> {
        let otherwise = Some(get(key));
        let txn = Txn {
            compare,
            then,
            otherwise,
        };
        self.send(key, txn).await
    }

    async fn send(&self, key: &str, txn: Txn) -> Result<TxnResponse, CopyError> {
        let written = self.backend.txn(txn).await;
        written.map_err(|source| match source {
            BackendError::TooLarge(_) | BackendError::NoSpace | BackendError::LeaseNotFound => {
                CopyError::Write {
                    key: key.to_owned(),
                    source,
                }
            }
            other => CopyError::Target(other),
        })
    }

    async fn apply_one(&self, change: TargetChange) -> Result<(), CopyError> {
        let (key, mut expected, then) = match change {
            TargetChange::Put { wanted, replaced } => {
                let then = put(&wanted.key, wanted.value, wanted.lease);
                (wanted.key, replaced, Some(then))
            }
            TargetChange::Remove { key, revision } => (key, revision, None),
        };
        loop {
            let compare = Compare::ModRevision(key.clone(), expected);
            let op = then.clone().unwrap_or_else(|| delete(&key));
            let response = match self.txn(&key, compare, op).await {
                // Its time has run out since it was granted, so the key would be gone by now.
                Err(CopyError::Write {
                    source: BackendError::LeaseNotFound,
                    ..
                }) => return Ok(()),
                response => response?,
            };
            // The lease of the former version may have ended since it was read.
            let has_gone = !response.succeeded && response.found.is_none() && expected != 0;
            if !has_gone {
                return accepted(&key, &response);
            }
            if then.is_none() {
                return Ok(());
            }
            expected = 0;
        }
    }
}

#[async_trait]
impl Pages for BackendTarget {
    async fn page(&self, after: &str, limit: u64, revision: u64) -> Result<KeyPage, BackendError> {
        page_of(&*self.backend, after, limit, revision).await
    }
}

#[async_trait]
impl CopyTarget for BackendTarget {
    fn keeps_revisions(&self) -> bool {
        false
    }

    async fn begin(&mut self, pass: Marker, progress: &dyn CopyProgress) -> Result<(), CopyError> {
        if self.marker.is_some() {
            self.own_marker().await?;
        }
        let (found, revision) = self.read_marker().await?;
        let mut marker = match &found {
            Some(found) => pass.next(&found.value)?,
            None => match count(&*self.backend, 0).await.map_err(CopyError::Target)? {
                0 => pass,
                keys => return Err(CopyError::NotEmpty { keys }),
            },
        };
        // No other run has this number: of those that have read this revision, one alone can write the marker.
        marker.run = revision;
        let before = found.map_or(0, |it| it.mod_revision);
        let written = self.write_marker(&marker, before).await?;
        if before == 0 {
            self.refuse_other_keys(written).await?;
        }
        let goal = marker.revision + DISTANCE_MIN;
        self.raise(&marker, written, goal, progress).await?;
        self.marker = Some(marker);
        Ok(())
    }

    /// The revision of a key must be past all of the source.
    fn holds(&self, wanted: &KeyValue, found: &KeyValue) -> bool {
        found.mod_revision > self.source_revision()
            && (&wanted.value, wanted.lease) == (&found.value, found.lease)
    }

    async fn grant(&mut self, lease: LeaseId, ttl_seconds: i64) -> Result<(), CopyError> {
        let granted = self.backend.grant_numbered(lease, ttl_seconds).await;
        granted.map_err(CopyError::Target)
    }

    async fn has_lease(&self, lease: LeaseId) -> Result<bool, BackendError> {
        Ok(self.backend.time_to_live(lease).await?.is_some())
    }

    async fn apply(&mut self, changes: Vec<TargetChange>) -> Result<(), CopyError> {
        self.own_marker().await?;
        let writes = stream::iter(changes).map(|change| self.apply_one(change));
        let writes = writes.buffer_unordered(WRITES_IN_FLIGHT_MAX);
        writes.try_collect().await
    }

    /// Compacts first: a store without the marker has no history that could be taken for the source's.
    async fn finish(&mut self, _digest: ContentDigest) -> Result<u64, CopyError> {
        let (found, revision) = self.own_marker().await?;
        let needed = self.source_revision().saturating_add(DISTANCE_MIN);
        if revision < needed {
            return Err(CopyError::Behind { revision, needed });
        }
        self.compact(revision).await?;
        let removed = self.remove_marker(found.mod_revision).await;
        let Err(CopyError::Target(error)) = removed else {
            return removed;
        };
        // The answer alone may be lost. Without its marker the copy is whole, and no other run could go on with it.
        match self.read_marker().await {
            Ok((None, revision)) => Ok(revision),
            _ => Err(CopyError::Target(error)),
        }
    }
}

fn put(key: &str, value: Bytes, lease: Option<LeaseId>) -> Op {
    Op::Put {
        key: key.to_owned(),
        value,
        lease,
    }
}

fn get(key: &str) -> Op {
    Op::Get {
        key: key.to_owned(),
    }
}

fn delete(key: &str) -> Op {
    Op::Delete {
        key: key.to_owned(),
    }
}

/// Checks that a key was as it was compared.
fn accepted(key: &str, response: &TxnResponse) -> Result<(), CopyError> {
    match response.succeeded {
        true => Ok(()),
        false => Err(written_by_others(key)),
    }
}

fn written_by_others(key: &str) -> CopyError {
    CopyError::TargetWritten {
        key: key.to_owned(),
    }
}
