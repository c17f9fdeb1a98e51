//! The effects of requests on the state, the leases and the batch that is to be made durable.

use super::Writer;
use crate::clock::Instant;
use crate::storage::backend::embedded::lease_book::LeaseBook;
use crate::storage::backend::embedded::log::{LogBatch, room};
use crate::storage::backend::embedded::mvcc::{Record, RevisionChange};
use crate::storage::backend::embedded::request::{Responder, WriterRequest, answer};
use crate::storage::backend::{BackendError, Compare, LeaseId, Op, Txn, TxnResponse};

/// The overhead of a put beside its key and its value, as in etcd.
pub(super) const PUT_OVERHEAD_BYTES: usize = 256;
/// The cost of a lease, as in etcd.
const LEASE_BYTES: usize = 64;

impl Writer {
    /// Executes a request on the state, and adds to the batch what has to be made durable. Returns its reply.
    pub(super) fn apply(&mut self, request: WriterRequest, batch: &mut LogBatch) -> Responder {
        match (request, self.refusal.clone()) {
            (WriterRequest::Recover { now, reply }, _) => answer(reply, self.recover(now)),
            (request, Some(refusal)) => request.refuse(refusal),
            (WriterRequest::Verify { reply }, None) => answer(reply, self.verify()),
            (WriterRequest::Txn(txn, reply), None) => answer(reply, self.txn(txn, batch)),
            (
                WriterRequest::Grant {
                    ttl_seconds,
                    now,
                    reply,
                },
                None,
            ) => answer(reply, self.grant(ttl_seconds, now, batch)),
            (WriterRequest::Expire { now, reply }, None) => {
                self.expire(now, batch);
                answer(reply, Ok(()))
            }
            (WriterRequest::Compact { revision, reply }, None) => {
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
        if let RevisionChange::Put(version) = &record.change
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

    /// Compacts the history up to a revision.
    pub(super) fn compact(
        &mut self,
        revision: u64,
        batch: &mut LogBatch,
    ) -> Result<(), BackendError> {
        self.obsolete.extend(self.state.compact(revision)?);
        batch.compacted = Some(revision);
        Ok(())
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
}
