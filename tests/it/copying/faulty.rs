//! A backend in memory that fails at a chosen call, whose leases have numbers, and to which others write at a chosen
//! call.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::copy::NumberedLeases;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{
    Backend, BackendError, KeyValue, LeaseId, Op, RangeRequest, RangeResponse, Txn, TxnResponse,
    WatchRequest, WatchResponses,
};
use tokio::sync::Semaphore;

/// The part of a call that a failure leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The call has no effect.
    Before,
    /// The call has its effect, and its answer is lost.
    After,
}

/// The number of calls to a source by a copy of one pass.
pub(super) const CALLS_OF_A_PASS: u64 = 7;

/// Another program that writes to the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intruder {
    /// The number of calls before its first write.
    pub(super) after: u64,
    /// True if it writes at each call from then on.
    pub(super) again: bool,
}

/// The state of the wrapper.
#[derive(Debug, Default)]
struct State {
    calls: u64,
    /// The calls that fail.
    failure: Option<(RangeInclusive<u64>, Failure)>,
    /// The call that waits, and the permit for which it does.
    hold: Option<(u64, Arc<Semaphore>)>,
    intruder: Option<Intruder>,
    /// The lease of the store for each number, and its time to live.
    leases: BTreeMap<LeaseId, (LeaseId, i64)>,
}

/// A store in memory.
#[derive(Debug)]
pub(super) struct Faulty {
    store: Embedded,
    state: Mutex<State>,
}

impl Faulty {
    pub(super) fn new() -> Self {
        Self {
            store: Embedded::in_memory(Clock::real()),
            state: Mutex::default(),
        }
    }

    /// Makes the call after so many, and all later ones, fail.
    pub(super) fn fail(&self, after: u64, failure: Failure) {
        let mut state = self.state.lock().unwrap();
        state.failure = Some((state.calls + after..=u64::MAX, failure));
    }

    /// Makes the call after so many fail.
    pub(super) fn fail_once(&self, after: u64, failure: Failure) {
        let mut state = self.state.lock().unwrap();
        let call = state.calls + after;
        state.failure = Some((call..=call, failure));
    }

    /// Makes the call after so many wait for a permit of the semaphore that is returned.
    pub(super) fn hold(&self, after: u64) -> Arc<Semaphore> {
        let mut state = self.state.lock().unwrap();
        let permits = Arc::new(Semaphore::new(0));
        state.hold = Some((state.calls + after, Arc::clone(&permits)));
        permits
    }

    /// Returns true if a call waits, or did.
    pub(super) fn has_held(&self) -> bool {
        self.state.lock().unwrap().hold.is_none()
    }

    /// Returns the number of calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.state.lock().unwrap().calls
    }

    /// Lets all calls succeed. Returns true if one has failed.
    pub(super) fn mend(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let failure = state.failure.take();
        failure.is_some_and(|(failing, _)| state.calls > *failing.start())
    }

    /// Lets another program write to the store.
    pub(super) fn intrude(&self, intruder: Intruder) {
        let mut state = self.state.lock().unwrap();
        let after = state.calls + intruder.after;
        state.intruder = Some(Intruder { after, ..intruder });
    }

    /// Ends a lease, as its expiry does.
    pub(super) async fn end_lease(&self, lease: LeaseId) {
        let keys = super::content(self).await;
        self.state.lock().unwrap().leases.remove(&lease);
        for (key, (_, of_key)) in keys {
            if of_key == Some(lease) {
                super::delete(&self.store, &key).await;
            }
        }
    }

    /// Counts a call. Returns how it fails.
    async fn call(&self) -> Option<Failure> {
        let (failure, intrudes, hold, calls) = {
            let mut state = self.state.lock().unwrap();
            let calls = state.calls;
            state.calls += 1;
            let failure = state.failure.as_ref();
            let failure = failure.filter(|(failing, _)| failing.contains(&calls));
            let failure = failure.map(|(_, it)| *it);
            let intruder = state.intruder.filter(|it| calls >= it.after);
            if intruder.is_some_and(|it| !it.again) {
                state.intruder = None;
            }
            let hold = state.hold.take_if(|(at, _)| calls == *at);
            (failure, intruder.is_some(), hold, calls)
        };
        if let Some((_, permits)) = hold {
            permits.acquire().await.expect("a permit").forget();
        }
        if intrudes {
            super::put(&self.store, "/intruder", &calls.to_string(), None).await;
        }
        failure
    }

    async fn failing<T>(
        &self,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let lost = BackendError::Unavailable("it fails on purpose".to_owned());
        match self.call().await {
            Some(Failure::Before) => Err(lost),
            Some(Failure::After) => call.await.and(Err(lost)),
            None => call.await,
        }
    }

    /// Returns the lease of the store for a number.
    fn inner(&self, lease: LeaseId) -> LeaseId {
        let state = self.state.lock().unwrap();
        state.leases.get(&lease).map_or(lease, |(inner, _)| *inner)
    }

    /// Gives a version the number of its lease.
    fn numbered(&self, mut kv: KeyValue) -> KeyValue {
        let state = self.state.lock().unwrap();
        let number = |inner: LeaseId| {
            let mut leases = state.leases.iter();
            leases.find_map(|(number, it)| (it.0 == inner).then_some(*number))
        };
        kv.lease = kv.lease.map(|inner| number(inner).unwrap_or(inner));
        kv
    }
}

#[async_trait]
impl Backend for Faulty {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        let mut response = self.failing(self.store.range(request)).await?;
        let kvs = std::mem::take(&mut response.kvs).into_iter();
        response.kvs = kvs.map(|kv| self.numbered(kv)).collect();
        Ok(response)
    }

    async fn txn(&self, mut txn: Txn) -> Result<TxnResponse, BackendError> {
        if let Op::Put { lease, .. } = &mut txn.then {
            *lease = lease.map(|lease| self.inner(lease));
        }
        self.failing(self.store.txn(txn)).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        self.store.watch(request).await
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.store.request_progress().await
    }

    fn progress_is_trusted(&self) -> bool {
        true
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        self.store.grant_lease(ttl_seconds).await
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.failing(self.store.compact(revision)).await
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        self.store.oldest_revision().await
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.store.size_bytes().await
    }
}

#[async_trait]
impl NumberedLeases for Faulty {
    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError> {
        self.failing(async {
            let state = self.state.lock().unwrap();
            Ok(state
                .leases
                .get(&lease)
                .map(|(_, ttl_seconds)| *ttl_seconds))
        })
        .await
    }

    async fn grant_numbered(&self, lease: LeaseId, ttl_seconds: i64) -> Result<(), BackendError> {
        self.failing(async {
            if self.state.lock().unwrap().leases.contains_key(&lease) {
                return Ok(());
            }
            let inner = self.store.grant_lease(ttl_seconds).await?;
            let mut state = self.state.lock().unwrap();
            state.leases.insert(lease, (inner, ttl_seconds));
            Ok(())
        })
        .await
    }
}
