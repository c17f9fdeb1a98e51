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

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::history_bound::HistoryBound;
use super::lease_book::LeaseBook;
use super::log::{LogBatch, LogStore, room};
use super::mvcc::{Change, Record, State};
use super::published::{Published, closed_error};
use crate::budget::Ledger;
use crate::clock::Instant;
use crate::storage::backend::{BackendError, Compare, LeaseId, Op, Txn, TxnResponse};

/// The most obsolete records that one batch removes from the log; the rest waits for the next, so that a compaction
/// does not delay writes.
const REMOVALS_PER_BATCH_MAX: usize = 1_000;
/// The overhead of a put beside its key and its value, as in etcd.
const PUT_OVERHEAD_BYTES: usize = 256;
/// The cost of a lease, as in etcd.
const LEASE_BYTES: usize = 64;

/// The sender of a request's outcome. The caller may have gone.
pub(super) type Reply<T> = oneshot::Sender<Result<T, BackendError>>;

/// A request to the writer. The writer reads no clock, so requests carry the time.
#[derive(Debug)]
pub(super) enum Request {
    Txn(Txn, Reply<TxnResponse>),
    Grant {
        ttl_seconds: i64,
        now: Instant,
        reply: Reply<LeaseId>,
    },
    /// Ends the leases whose deadline has come.
    Expire {
        now: Instant,
        reply: Reply<()>,
    },
    Compact {
        revision: u64,
        reply: Reply<()>,
    },
    /// Compares a part of the log with what was written there.
    Verify {
        reply: Reply<()>,
    },
    /// Recovers a log that failed.
    Recover {
        now: Instant,
        reply: Reply<()>,
    },
}

/// Sends a caller the outcome of its request, or the error of the batch.
type Answer = Box<dyn FnOnce(Option<&BackendError>)>;

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
    published: Arc<watch::Sender<Published>>,
    /// The time at which the next lease expires.
    expiry: watch::Sender<Option<Instant>>,
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
        let published = Published {
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
    pub(super) fn published(&self) -> Arc<watch::Sender<Published>> {
        Arc::clone(&self.published)
    }

    /// Returns a receiver of the time at which the next lease expires.
    pub(super) fn expiry(&self) -> watch::Receiver<Option<Instant>> {
        self.expiry.subscribe()
    }

    /// Returns true if the log holds records that a batch, even an empty one, would remove.
    pub(super) fn has_removals(&self) -> bool {
        !self.obsolete.is_empty() && self.refusal.is_none()
    }

    /// Executes requests, makes them durable at once, publishes the new state, and replies. Blocks.
    pub(super) fn commit(&mut self, requests: Vec<Request>) {
        let mut batch = LogBatch::default();
        let mut answers = Vec::with_capacity(requests.len());
        // The log recovers, or is found damaged, before the batch begins, so that a batch fails as a whole or not at all.
        let (first, requests): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .partition(|it| matches!(it, Request::Recover { .. } | Request::Verify { .. }));
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
    }

    fn apply(&mut self, request: Request, batch: &mut LogBatch) -> Answer {
        match (request, self.refusal.clone()) {
            (Request::Recover { now, reply }, _) => answer(reply, self.recover(now)),
            (request, Some(refusal)) => request.refuse(refusal),
            (Request::Verify { reply }, None) => answer(reply, self.verify()),
            (Request::Txn(txn, reply), None) => answer(reply, self.txn(txn, batch)),
            (
                Request::Grant {
                    ttl_seconds,
                    now,
                    reply,
                },
                None,
            ) => answer(reply, self.grant(ttl_seconds, now, batch)),
            (Request::Expire { now, reply }, None) => {
                self.expire(now, batch);
                answer(reply, Ok(()))
            }
            (Request::Compact { revision, reply }, None) => {
                answer(reply, self.compact(revision, batch))
            }
        }
    }

    fn txn(&mut self, txn: Txn, batch: &mut LogBatch) -> Result<TxnResponse, BackendError> {
        let succeeded = match &txn.compare {
            Compare::ModRevision(key, revision) => {
                self.state.get(key).map_or(0, |it| it.mod_revision) == *revision
            }
            Compare::Version(key, version) => {
                self.state.get(key).map_or(0, |it| it.version) == *version
            }
        };
        let op = match succeeded {
            true => Some(txn.then),
            false => txn.otherwise,
        };
        let mut found = None;
        match op {
            None => {}
            Some(Op::Get { key }) => found = self.state.get(&key).map(|it| it.to_kv()),
            Some(Op::Delete { key }) => self.delete([key.as_str()], batch),
            Some(Op::Put { key, value, lease }) => {
                if lease.is_some_and(|lease| !self.leases.contains(lease)) {
                    return Err(BackendError::LeaseNotFound);
                }
                self.take_room(room(key.len() + value.len() + PUT_OVERHEAD_BYTES))?;
                self.detach(&key);
                let record = self.state.put(&key, value, lease);
                self.attach(&record);
                batch.records.push(record);
            }
        }
        Ok(TxnResponse {
            revision: self.state.revision(),
            succeeded,
            found,
        })
    }

    /// Deletes keys at one revision.
    fn delete<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a str> + Clone,
        batch: &mut LogBatch,
    ) {
        for key in keys.clone() {
            self.detach(key);
        }
        batch.records.extend(self.state.delete(keys));
    }

    /// Detaches a key's newest version from its lease.
    fn detach(&mut self, key: &str) {
        if let Some(lease) = self.state.get(key).and_then(|version| version.lease) {
            self.leases.detach(lease, key);
        }
    }

    fn attach(&mut self, record: &Record) {
        if let Change::Put(version) = &record.change
            && let Some(lease) = version.lease
        {
            self.leases.attach(lease, &version.key);
        }
    }

    fn grant(
        &mut self,
        ttl_seconds: i64,
        now: Instant,
        batch: &mut LogBatch,
    ) -> Result<LeaseId, BackendError> {
        let ttl_seconds = LeaseBook::effective_ttl(ttl_seconds)?;
        self.take_room(room(LEASE_BYTES))?;
        let id = self.unused_lease_id();
        self.leases.insert(id, ttl_seconds, now);
        batch.granted.push((id, ttl_seconds));
        Ok(id)
    }

    /// Returns an id that is not in use: a random one, so that none is used again after a restart.
    fn unused_lease_id(&self) -> LeaseId {
        loop {
            let id = LeaseId(rand::random_range(1..=i64::MAX));
            if !self.leases.contains(id) {
                return id;
            }
        }
    }

    /// The keys of each lease are deleted at one revision.
    fn expire(&mut self, now: Instant, batch: &mut LogBatch) {
        while let Some((id, keys)) = self.leases.take_expired(now) {
            batch.expired.push(id);
            self.delete(keys.iter().map(AsRef::as_ref), batch);
        }
    }

    fn compact(&mut self, revision: u64, batch: &mut LogBatch) -> Result<(), BackendError> {
        self.obsolete.extend(self.state.compact(revision)?);
        batch.compacted = Some(revision);
        Ok(())
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

    /// Counts the bytes of a write, if the quota allows it.
    fn take_room(&mut self, needed_bytes: u64) -> Result<(), BackendError> {
        if !self.has_room(needed_bytes) {
            self.lacking_bytes = Some(needed_bytes);
            return Err(BackendError::NoSpace);
        }
        self.batch_bytes += needed_bytes;
        Ok(())
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
    }
}

impl Request {
    /// Replies that the request was refused.
    fn refuse(self, refusal: BackendError) -> Answer {
        match self {
            Self::Txn(_, reply) => answer(reply, Err(refusal)),
            Self::Grant { reply, .. } => answer(reply, Err(refusal)),
            Self::Expire { reply, .. }
            | Self::Compact { reply, .. }
            | Self::Verify { reply }
            | Self::Recover { reply, .. } => answer(reply, Err(refusal)),
        }
    }
}

/// Returns the reply to one request, to be sent unless the batch fails.
fn answer<T: 'static>(reply: Reply<T>, outcome: Result<T, BackendError>) -> Answer {
    Box::new(move |failure| {
        let outcome = match failure {
            Some(error) => Err(error.clone()),
            None => outcome,
        };
        // An error means that the caller has gone.
        let _ = reply.send(outcome);
    })
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
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::budget::Account;
    use crate::clock::Clock;
    use crate::storage::backend::embedded::log::{MemoryLog, RecordingLog};
    use crate::sync::Mutex;

    /// Returns a request that writes a key, and the receiver of its outcome.
    fn put() -> (
        Request,
        oneshot::Receiver<Result<TxnResponse, BackendError>>,
    ) {
        put_bytes(0)
    }

    /// Returns a request that writes so many bytes under a key, and the receiver of its outcome.
    fn put_bytes(
        len: usize,
    ) -> (
        Request,
        oneshot::Receiver<Result<TxnResponse, BackendError>>,
    ) {
        let (reply, outcome) = oneshot::channel();
        let txn = Txn {
            compare: Compare::Version("/never".to_owned(), 0),
            then: Op::Put {
                key: "/a".to_owned(),
                value: vec![0; len].into(),
                lease: None,
            },
            otherwise: None,
        };
        (Request::Txn(txn, reply), outcome)
    }

    fn writer(log: &RecordingLog) -> Writer {
        let log = Box::new(log.clone());
        Writer::new(State::new(), LeaseBook::default(), log, Vec::new())
    }

    #[test]
    fn nothing_is_shown_or_answered_before_it_is_durable() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let published = writer.published();
        let (request, mut outcome) = put();
        let (sender, revisions) = std::sync::mpsc::channel();
        let seen = Arc::clone(&published);
        log.0.lock().unwrap().during_commit = Some(Box::new(move || {
            sender.send(seen.borrow().state.revision()).unwrap();
        }));
        assert!(outcome.try_recv().is_err());
        writer.commit(vec![request]);
        assert_eq!(revisions.try_iter().collect::<Vec<_>>(), [1]);
        assert_eq!(published.borrow().state.revision(), 2);
        assert_eq!(outcome.try_recv().unwrap().unwrap().revision, 2);
    }

    type Outcome = Box<dyn FnMut() -> Option<Result<(), BackendError>> + Send>;

    /// Returns a request, and what tells its outcome once it has one.
    fn asked<T: Send + 'static>(request: impl FnOnce(Reply<T>) -> Request) -> (Request, Outcome) {
        let (reply, mut receiver) = oneshot::channel::<Result<T, BackendError>>();
        let outcome = move || receiver.try_recv().ok().map(|it| it.map(drop));
        (request(reply), Box::new(outcome))
    }

    /// Returns requests of every kind with their outcomes, of which some write nothing: the first one writes a key.
    fn of_every_kind() -> (Vec<Request>, Vec<Outcome>) {
        let now = Clock::real().now();
        let key = || "/a".to_owned();
        let put = |lease| Op::Put {
            key: key(),
            value: Bytes::new(),
            lease,
        };
        let txn = |revision: u64, then: Op, otherwise: Option<Op>| {
            let compare = Compare::ModRevision(key(), revision);
            let txn = Txn {
                compare,
                then,
                otherwise,
            };
            asked(|reply| Request::Txn(txn, reply))
        };
        let get = || Op::Get { key: key() };
        let grant = |ttl_seconds| {
            asked(move |reply| Request::Grant {
                ttl_seconds,
                now,
                reply,
            })
        };
        let compact = |revision| asked(move |reply| Request::Compact { revision, reply });
        let requests = [
            txn(0, put(None), None),
            txn(0, put(None), None),
            txn(0, put(None), Some(get())),
            txn(2, get(), None),
            txn(2, put(Some(LeaseId(7))), None),
            txn(1, Op::Delete { key: key() }, None),
            txn(2, Op::Delete { key: key() }, None),
            txn(0, Op::Delete { key: key() }, None),
            grant(60),
            grant(i64::MAX),
            compact(2),
            compact(u64::MAX),
            asked(move |reply| Request::Expire { now, reply }),
        ];
        requests.into_iter().unzip()
    }

    /// A reader that was told of a write by the failed comparison of its own one would lose it in a crash.
    #[test]
    fn nothing_of_a_batch_is_answered_before_it_is_durable() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let (requests, outcomes) = of_every_kind();
        let count = outcomes.len();
        let outcomes = Arc::new(Mutex::new(outcomes));
        let (sender, answered) = std::sync::mpsc::channel();
        let during = Arc::clone(&outcomes);
        log.0.lock().unwrap().during_commit = Some(Box::new(move || {
            let mut outcomes = during.lock().unwrap();
            let early = outcomes.iter_mut().filter_map(|outcome| outcome()).count();
            sender.send(early).unwrap();
        }));
        writer.commit(requests);
        assert_eq!(answered.try_iter().collect::<Vec<_>>(), [0]);
        let mut outcomes = outcomes.lock().unwrap();
        let answered = outcomes.iter_mut().filter_map(|outcome| outcome());
        assert_eq!(answered.count(), count);
    }

    /// The writes that a request of the batch saw are not there, so even its refusal would be a lie.
    #[test]
    fn a_batch_that_fails_fails_as_a_whole() {
        let log = RecordingLog::default();
        log.0.lock().unwrap().broken = true;
        let mut writer = writer(&log);
        let (requests, mut outcomes) = of_every_kind();
        writer.commit(requests);
        let failed = Some(Err(BackendError::ReadOnly("the disk is full".to_owned())));
        for outcome in &mut outcomes {
            assert_eq!(outcome(), failed);
        }
    }

    #[test]
    fn a_log_that_fails_refuses_all_writes_until_it_has_recovered() {
        let log = RecordingLog::default();
        log.0.lock().unwrap().broken = true;
        let mut writer = writer(&log);
        let refused = BackendError::ReadOnly("the disk is full".to_owned());
        let ((first, mut one), (second, mut two)) = (put(), put());
        writer.commit(vec![first, second]);
        log.0.lock().unwrap().broken = false;
        let (third, mut three) = put();
        writer.commit(vec![third]);
        for outcome in [&mut one, &mut two, &mut three] {
            assert_eq!(outcome.try_recv().unwrap().unwrap_err(), refused);
        }
        assert_eq!(log.0.lock().unwrap().batches, [vec![2, 3]]);
        let published = writer.published();
        assert_eq!(published.borrow().state.revision(), 1);
        assert_eq!(published.borrow().refusal, Some(refused));
        let (reply, mut recovered) = oneshot::channel();
        let now = Clock::real().now();
        let (fourth, mut four) = put();
        writer.commit(vec![fourth, Request::Recover { now, reply }]);
        assert_eq!(recovered.try_recv().unwrap(), Ok(()));
        assert_eq!(four.try_recv().unwrap().unwrap().revision, 2);
        assert_eq!(published.borrow().refusal, None);
        assert_eq!(published.borrow().state.revision(), 2);
    }

    #[test]
    fn a_log_that_is_damaged_refuses_the_writes_that_come_with_its_verification() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        log.0.lock().unwrap().broken = true;
        let (reply, mut verified) = oneshot::channel();
        let (write, mut outcome) = put();
        writer.commit(vec![write, Request::Verify { reply }]);
        let refused = BackendError::ReadOnly("the disk is damaged".to_owned());
        assert_eq!(verified.try_recv().unwrap(), Err(refused.clone()));
        assert_eq!(outcome.try_recv().unwrap().unwrap_err(), refused);
        assert!(log.0.lock().unwrap().batches.is_empty());
        assert_eq!(writer.published().borrow().refusal, Some(refused));
        log.0.lock().unwrap().broken = false;
        recover(&mut writer).unwrap();
        let (reply, mut verified) = oneshot::channel();
        writer.commit(vec![Request::Verify { reply }]);
        assert_eq!(verified.try_recv().unwrap(), Ok(()));
    }

    #[test]
    fn the_quota_refuses_puts_and_takes_deletions() {
        let mut writer = Writer::new(
            State::new(),
            LeaseBook::default(),
            Box::new(MemoryLog::default()),
            Vec::new(),
        );
        writer.set_limits(Some(1_000), &Ledger::unlimited());
        let published = writer.published();
        let mut taken = 0;
        let refused = loop {
            let (request, mut outcome) = put();
            writer.commit(vec![request]);
            match outcome.try_recv().unwrap() {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, BackendError::NoSpace);
        assert!(taken > 3, "{taken}");
        assert!(published.borrow().no_space);
        let (reply, mut deleted) = oneshot::channel();
        let revision = writer.state.revision();
        let txn = Txn {
            compare: Compare::ModRevision("/a".to_owned(), revision),
            then: Op::Delete {
                key: "/a".to_owned(),
            },
            otherwise: None,
        };
        writer.commit(vec![Request::Txn(txn, reply)]);
        let revision = deleted.try_recv().unwrap().unwrap().revision;
        let (reply, mut compacted) = oneshot::channel();
        writer.commit(vec![Request::Compact { revision, reply }]);
        assert_eq!(compacted.try_recv().unwrap(), Ok(()));
        while writer.has_removals() {
            writer.commit(Vec::new());
        }
        assert!(!published.borrow().no_space);
        assert!(published.borrow().used_bytes < 200);
        let (request, mut outcome) = put();
        writer.commit(vec![request]);
        assert!(outcome.try_recv().unwrap().is_ok());
    }

    #[test]
    fn a_history_at_its_bound_is_compacted_by_the_batch_that_exceeds_it() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let ledger = Ledger::new(128 << 20);
        writer.set_limits(None, &ledger);
        let published = writer.published();
        let mut most = 0;
        for _ in 0..40 {
            writer.commit(vec![put_bytes(1 << 20).0]);
            let history_bytes = published.borrow().state.history_bytes();
            assert_eq!(ledger.spent(Account::History), history_bytes);
            most = most.max(history_bytes);
        }
        assert!((15 << 20..=16 << 20).contains(&most), "{most}");
        let compacted = published.borrow().state.compacted();
        assert!(
            (25..34).contains(&compacted),
            "half of it stays: {compacted}"
        );
        assert_eq!(log.0.lock().unwrap().compacted, compacted, "durably");
        let kept = published.borrow().state.revision() - compacted;
        assert!(kept >= 7, "{kept}");
        writer.commit(Vec::new());
        assert!(!writer.has_removals());
    }

    #[test]
    fn a_batch_larger_than_the_bound_leaves_what_watches_have_to_read() {
        let mut writer = writer(&RecordingLog::default());
        writer.set_limits(None, &Ledger::new(128 << 20));
        writer.commit(vec![put_bytes(1).0]);
        let published = writer.published();
        let read = published.borrow().state.revision();
        writer.commit((0..20).map(|_| put_bytes(1 << 20).0).collect());
        assert_eq!(published.borrow().state.compacted(), read + 1);
        writer.commit(Vec::new());
        let state = published.borrow().state.clone();
        assert!(state.compacted() > read + 1);
        assert!(state.history_bytes() <= 8 << 20);
    }

    #[test]
    fn a_compaction_at_the_bound_that_fails_is_done_after_recovery() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        writer.set_limits(None, &Ledger::new(128 << 20));
        for _ in 0..17 {
            writer.commit(vec![put_bytes(1 << 20).0]);
        }
        let state = |writer: &Writer| writer.published().borrow().state.clone();
        let before = state(&writer).compacted();
        log.0.lock().unwrap().broken = true;
        for _ in 0..20 {
            writer.commit(vec![put_bytes(1 << 20).0]);
        }
        assert_eq!(state(&writer).compacted(), before);
        log.0.lock().unwrap().broken = false;
        recover(&mut writer).unwrap();
        for _ in 0..17 {
            writer.commit(vec![put_bytes(1 << 20).0]);
        }
        assert!(state(&writer).compacted() > before);
        assert!(state(&writer).history_bytes() <= 16 << 20);
    }

    fn recover(writer: &mut Writer) -> Result<(), BackendError> {
        let (reply, mut recovered) = oneshot::channel();
        let now = Clock::real().now();
        writer.commit(vec![Request::Recover { now, reply }]);
        recovered.try_recv().unwrap()
    }

    /// Returns the outcomes of two puts in one batch under a quota.
    fn put_twice(quota_bytes: u64) -> [bool; 2] {
        let log = Box::new(MemoryLog::default());
        let mut writer = Writer::new(State::new(), LeaseBook::default(), log, Vec::new());
        writer.set_limits(Some(quota_bytes), &Ledger::unlimited());
        let ((first, mut one), (second, mut two)) = (put(), put());
        writer.commit(vec![first, second]);
        [&mut one, &mut two].map(|it| it.try_recv().unwrap().is_ok())
    }

    #[test]
    fn the_quota_is_exact_and_counts_the_batch_at_hand() {
        let one = room("/a".len() + PUT_OVERHEAD_BYTES);
        assert_eq!(put_twice(one - 1), [false, false]);
        assert_eq!(put_twice(one), [true, false]);
        assert_eq!(put_twice(2 * one - 1), [true, false]);
        assert_eq!(put_twice(2 * one), [true, true]);
    }

    #[test]
    fn watchers_are_notified_of_news_alone() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let mut news = writer.published().subscribe();
        let mut is_news = || {
            let is_news = news.has_changed().unwrap();
            news.mark_unchanged();
            is_news
        };
        writer.commit(vec![put().0]);
        assert!(is_news());
        writer.commit(Vec::new());
        assert!(!is_news());
        log.0.lock().unwrap().broken = true;
        writer.commit(vec![put().0]);
        assert!(is_news(), "writes are refused");
        writer.commit(vec![put().0]);
        assert!(!is_news());
        log.0.lock().unwrap().broken = false;
        recover(&mut writer).unwrap();
        assert!(is_news(), "writes are taken again");
    }

    #[test]
    fn the_next_expiry_is_told_when_it_changes() {
        let mut writer = writer(&RecordingLog::default());
        let mut expiry = writer.expiry();
        writer.commit(vec![put().0]);
        assert!(!expiry.has_changed().unwrap());
        let now = Clock::real().now();
        for (ttl_seconds, is_sooner) in [(60, true), (90, false), (30, true)] {
            let (reply, mut granted) = oneshot::channel();
            writer.commit(vec![Request::Grant {
                ttl_seconds,
                now,
                reply,
            }]);
            granted.try_recv().unwrap().unwrap();
            assert_eq!(expiry.has_changed().unwrap(), is_sooner, "{ttl_seconds} s");
            expiry.mark_unchanged();
        }
    }

    #[test]
    fn a_compaction_that_was_written_after_all_is_found_on_recovery() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        for _ in 0..3 {
            writer.commit(vec![put().0]);
        }
        log.0.lock().unwrap().broken = true;
        let (reply, mut compacted) = oneshot::channel();
        writer.commit(vec![Request::Compact { revision: 3, reply }]);
        assert!(compacted.try_recv().unwrap().is_err());
        let state = |writer: &Writer| writer.published().borrow().state.clone();
        assert_eq!(state(&writer).compacted(), 0);
        let mut recording = log.0.lock().unwrap();
        (recording.broken, recording.compacted) = (false, 3);
        drop(recording);
        recover(&mut writer).unwrap();
        assert_eq!(state(&writer).compacted(), 3);
        assert_eq!(log.0.lock().unwrap().removed, [2], "nobody needs it");
    }

    /// Whatever of the batch was not written: the lease goes on, with its keys, and ends later.
    #[test]
    fn a_lease_whose_expiry_failed_expires_after_the_recovery() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let now = Clock::real().now();
        let after = |seconds| now + std::time::Duration::from_secs(seconds);
        let (reply, mut granted) = oneshot::channel();
        writer.commit(vec![Request::Grant {
            ttl_seconds: 60,
            now,
            reply,
        }]);
        let lease = granted.try_recv().unwrap().unwrap();
        let op = Op::Put {
            key: "/a".to_owned(),
            value: Bytes::new(),
            lease: Some(lease),
        };
        let compare = Compare::ModRevision("/a".to_owned(), 0);
        let (put, _) = asked(|reply| {
            let txn = Txn {
                compare,
                then: op,
                otherwise: None,
            };
            Request::Txn(txn, reply)
        });
        writer.commit(vec![put]);
        let expire = |writer: &mut Writer, now| {
            let (expire, mut expired) = asked(|reply| Request::Expire { now, reply });
            writer.commit(vec![expire]);
            expired().unwrap()
        };
        log.0.lock().unwrap().broken = true;
        expire(&mut writer, after(61)).unwrap_err();
        {
            let mut recording = log.0.lock().unwrap();
            recording.broken = false;
            recording.leases = vec![(lease, 60)];
        }
        recover(&mut writer).unwrap();
        let is_there = |writer: &Writer| writer.state.get("/a").is_some();
        assert!(is_there(&writer));
        assert!(writer.expiry().borrow().is_some(), "somebody waits for it");
        expire(&mut writer, after(3_600)).unwrap();
        assert!(!is_there(&writer));
    }

    #[test]
    fn a_closed_store_does_not_recover() {
        let mut writer = writer(&RecordingLog::default());
        writer.close();
        recover(&mut writer).unwrap_err();
        let (request, mut outcome) = put();
        writer.commit(vec![request]);
        assert!(outcome.try_recv().unwrap().is_err());
    }

    #[test]
    fn what_writes_nothing_costs_no_commit() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let (reply, mut outcome) = oneshot::channel();
        let delete = Op::Delete {
            key: "/a".to_owned(),
        };
        let txn = Txn {
            compare: Compare::ModRevision("/a".to_owned(), 0),
            then: delete,
            otherwise: None,
        };
        writer.commit(vec![Request::Txn(txn, reply)]);
        assert_eq!(outcome.try_recv().unwrap().unwrap().revision, 1);
        assert!(log.0.lock().unwrap().batches.is_empty());
    }

    #[test]
    fn a_compaction_is_removed_from_the_log_in_parts() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        for _ in 0..REMOVALS_PER_BATCH_MAX + 2 {
            writer.commit(vec![put().0]);
        }
        let (reply, mut outcome) = oneshot::channel();
        let revision = writer.state.revision();
        writer.commit(vec![Request::Compact { revision, reply }]);
        assert_eq!(outcome.try_recv().unwrap(), Ok(()));
        assert_eq!(writer.obsolete.len(), REMOVALS_PER_BATCH_MAX + 1);
        writer.commit(Vec::new());
        assert_eq!(writer.obsolete.len(), 1);
        writer.commit(Vec::new());
        assert!(!writer.has_removals());
    }

    /// The recovery and the writes that waited for it may come together.
    #[test]
    fn a_batch_that_failed_takes_no_room() {
        let log = RecordingLog::default();
        let mut writer = writer(&log);
        let one = room("/a".len() + PUT_OVERHEAD_BYTES);
        writer.set_limits(Some(one), &Ledger::unlimited());
        log.0.lock().unwrap().broken = true;
        writer.commit(vec![put().0]);
        log.0.lock().unwrap().broken = false;
        let (reply, _recovered) = oneshot::channel();
        let now = Clock::real().now();
        let (request, mut outcome) = put();
        writer.commit(vec![Request::Recover { now, reply }, request]);
        outcome.try_recv().unwrap().expect("there is room");
    }
}
