//! The single writer of the embedded store.
//!
//! It applies a batch of requests to its own copy of the state, has the log make the batch durable, then publishes the
//! copy and replies. So no reader sees a change that could still be lost, and requests that came together share one
//! fsync. When the log fails, the copy is not published and the store accepts no more writes: whether the batch was
//! written is known only when the log has recovered. Then the copy is made anew from the published state and what the
//! log holds beyond it.
//!
//! A write that would make the records larger than the quota is refused. Deletions, the expiry of leases and compaction
//! are not: they bring the store below its quota again. A batch after which the history takes more memory than it may
//! compacts it.

mod execute;

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use tokio::sync::watch;

use super::history_bound::HistoryBound;
use super::lease_book::LeaseBook;
use super::log::{LogBatch, LogStore};
use super::mvcc::State;
use super::published::{PublishedState, closed_error};
use super::request::WriterRequest;
use crate::budget::Ledger;
use crate::clock::Instant;
use crate::storage::backend::BackendError;

/// The most obsolete records that one batch removes from the log; the rest waits for the next, so that a compaction
/// does not delay writes.
const REMOVALS_PER_BATCH_MAX: usize = 1_000;

/// The owner of the newest state.
pub(super) struct Writer {
    /// The newest state, ahead of the published one while a batch is written.
    state: State,
    leases: LeaseBook,
    log: Box<dyn LogStore>,
    /// Revisions whose records are still to be removed from the log, oldest first.
    obsolete: VecDeque<u64>,
    /// Maximum number of bytes that the records may need; unlimited if `None`.
    quota_bytes: Option<u64>,
    history: HistoryBound,
    /// The bytes that the batch at hand adds.
    batch_bytes: u64,
    /// The bytes that the last write refused because of the quota needed, while they are still not available.
    lacking_bytes: Option<u64>,
    published: Arc<watch::Sender<PublishedState>>,
    /// The time at which the next lease expires.
    expiry: watch::Sender<Option<Instant>>,
    /// True while the log accepts no writes. Each batch wakes whoever waits for the published state; this does not.
    is_refusing: watch::Sender<bool>,
    /// The reason why the log accepts no writes.
    refusal: Option<BackendError>,
}

impl Writer {
    /// Creates a writer over a log. `obsolete` are the revisions of records in the log that nothing needs.
    pub(super) fn new(
        state: State,
        leases: LeaseBook,
        log: Box<dyn LogStore>,
        obsolete: Vec<u64>,
    ) -> Self {
        let published = PublishedState {
            state: state.clone(),
            leases: leases.ttls().clone(),
            size_bytes: log.size_bytes(),
            used_bytes: log.used_bytes(),
            no_space: false,
            refusal: None,
            progress_requests: 0,
            closed: false,
        };
        Self {
            expiry: watch::Sender::new(leases.next_deadline()),
            is_refusing: watch::Sender::new(false),
            published: Arc::new(watch::Sender::new(published)),
            obsolete: obsolete.into(),
            quota_bytes: None,
            history: HistoryBound::new(&Ledger::unlimited()),
            batch_bytes: 0,
            lacking_bytes: None,
            refusal: None,
            state,
            leases,
            log,
        }
    }

    /// Refuses all writes until the log has recovered, if there is a reason.
    pub(super) fn refuse(&mut self, refusal: Option<BackendError>) {
        self.refusal = refusal;
        self.publish();
    }

    /// Limits how many bytes the records may need in the log, and the history in memory.
    pub(super) fn set_limits(&mut self, quota_bytes: Option<u64>, memory: &Ledger) {
        self.quota_bytes = quota_bytes;
        self.history = HistoryBound::new(memory);
        self.history.count(&self.state);
    }

    /// Returns the channel of the state that readers and watches see.
    pub(super) fn published(&self) -> Arc<watch::Sender<PublishedState>> {
        Arc::clone(&self.published)
    }

    /// Returns a receiver of the time at which the next lease expires.
    pub(super) fn expiry(&self) -> watch::Receiver<Option<Instant>> {
        self.expiry.subscribe()
    }

    /// Returns a receiver of whether the log accepts no writes.
    pub(super) fn is_refusing(&self) -> watch::Receiver<bool> {
        self.is_refusing.subscribe()
    }

    /// Returns true if the log holds records that a batch, even an empty one, would remove.
    pub(super) fn has_removals(&self) -> bool {
        !self.obsolete.is_empty() && self.refusal.is_none()
    }

    /// Executes requests, makes them durable at once, publishes the new state, and replies. Blocks.
    pub(super) fn commit(&mut self, requests: Vec<WriterRequest>) {
        let mut batch = LogBatch::default();
        let mut answers = Vec::with_capacity(requests.len());
        // The log recovers, or is found damaged, before the batch begins, so that a batch fails as a whole or not at
        // all.
        let (first, requests): (Vec<_>, Vec<_>) = requests.into_iter().partition(|it| {
            matches!(
                it,
                WriterRequest::Recover { .. } | WriterRequest::Verify { .. }
            )
        });
        for request in first {
            answers.push(self.apply(request, &mut batch));
        }
        if self.refusal.is_none() {
            let removals = self.obsolete.len().min(REMOVALS_PER_BATCH_MAX);
            batch.obsolete.extend(self.obsolete.drain(..removals));
        }
        let still_obsolete = self.obsolete.len();
        for request in requests {
            answers.push(self.apply(request, &mut batch));
        }
        self.bound_history(&mut batch);
        let mut failure = None;
        if !batch.is_empty() {
            failure = self.log.commit(&batch).err();
        }
        self.batch_bytes = 0;
        if failure.is_some() {
            // The log may still hold the records that were to be removed. Those that the batch was to compact are
            // needed, unless it turns out that the compaction was written.
            self.obsolete.truncate(still_obsolete);
            batch.obsolete.extend(self.obsolete.drain(..));
            self.obsolete = batch.obsolete.into();
            self.refusal.clone_from(&failure);
        }
        self.publish();
        for answer in answers {
            answer(failure.as_ref());
        }
    }

    /// Recovers the log, if it has failed.
    fn recover(&mut self, now: Instant) -> Result<(), BackendError> {
        let mut state = match &*self.published.borrow() {
            published if published.closed => return Err(closed_error()),
            published => published.state.clone(),
        };
        if self.refusal.is_none() {
            return Ok(());
        }
        let recovered = self.log.recover(state.revision())?;
        for record in recovered.records {
            state.apply(record);
        }
        if recovered.compacted > state.compacted() {
            self.obsolete.extend(state.compact(recovered.compacted)?);
        }
        self.leases = LeaseBook::from_log(recovered.leases, &state, now);
        self.state = state;
        self.refusal = None;
        Ok(())
    }

    /// Compares a part of the log with what was written there, and refuses all writes if it differs.
    fn verify(&mut self) -> Result<(), BackendError> {
        let verified = self.log.verify();
        self.refusal = verified.clone().err();
        verified
    }

    /// Ends the store: nothing more is written, and watches end.
    pub(super) fn close(&mut self) {
        self.refusal.get_or_insert_with(closed_error);
        self.published.send_modify(|it| it.closed = true);
        // The recovery ends then.
        self.is_refusing.send_replace(true);
    }

    /// Compacts the history if it takes more memory than it may, but for what this batch adds: watches that have read
    /// everything before it have that still to read. The next batch compacts the rest.
    fn bound_history(&mut self, batch: &mut LogBatch) {
        let next_for_watches = self.published.borrow().state.revision() + 1;
        let due = self.history.compaction_due(&self.state);
        let due = due.map(|revision| revision.min(next_for_watches));
        let is_possible = |revision: &u64| *revision > self.state.compacted();
        let Some(revision) = due.filter(|it| is_possible(it) && self.refusal.is_none()) else {
            return;
        };
        match self.compact(revision, batch) {
            Ok(()) => tracing::debug!(revision, "history is at its bound: it is compacted"),
            Err(error) => tracing::error!(%error, revision, "history cannot be compacted"),
        }
    }

    fn has_room(&self, needed_bytes: u64) -> bool {
        let used_bytes = self.log.used_bytes() + self.batch_bytes;
        let wanted_bytes = used_bytes.saturating_add(needed_bytes);
        self.quota_bytes.is_none_or(|quota| wanted_bytes <= quota)
    }

    /// Publishes the durable state, and whether more can be written. Watches are notified only of a new state.
    fn publish(&mut self) {
        self.lacking_bytes = self.lacking_bytes.filter(|it| !self.has_room(*it));
        let size_bytes = self.log.size_bytes();
        let mut replaced = None;
        self.published.send_if_modified(|it| {
            it.size_bytes = size_bytes;
            it.used_bytes = self.log.used_bytes();
            it.no_space = self.lacking_bytes.is_some();
            let failed = it.refusal != self.refusal;
            it.refusal.clone_from(&self.refusal);
            let news = (it.state.revision(), it.state.compacted())
                != (self.state.revision(), self.state.compacted());
            // The changes of a failed batch are not durable.
            if news && self.refusal.is_none() {
                it.leases.clone_from(self.leases.ttls());
                replaced = Some(std::mem::replace(&mut it.state, self.state.clone()));
            }
            failed || replaced.is_some()
        });
        // Dropped outside of the lock: a snapshot may be the last owner of much.
        drop(replaced);
        self.history.count(&self.state);
        let next = self.leases.next_deadline();
        self.expiry
            .send_if_modified(|it| std::mem::replace(it, next) != next);
        let is_refusing = self.refusal.is_some();
        self.is_refusing
            .send_if_modified(|it| std::mem::replace(it, is_refusing) != is_refusing);
    }
}

impl Debug for Writer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("state", &self.state)
            .field("log", &self.log)
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
