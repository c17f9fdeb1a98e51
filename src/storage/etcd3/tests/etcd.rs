//! An etcd that does what a test says. Its content is that of an embedded store in memory.
//!
//! Every request waits before it takes effect and before it is answered, as over a network: there a caller may be
//! dropped.

use std::collections::VecDeque;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::task::yield_now;

use super::*;
use crate::clock::Instant;
use crate::storage::backend::{
    BackendError, LeaseId, RangeRequest, RangeResponse, TxnResponse, WatchRequest, WatchResponses,
};
use crate::sync::{Mutex, MutexGuard};

/// The etcd.
#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) content: Arc<Embedded>,
    clock: Clock,
    script: Mutex<Script>,
    /// Counts how often all watches were broken.
    broken: watch::Sender<u64>,
}

/// The orders of a test, and what it may look at.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// The number of further writes with a lease that find it gone.
    pub(crate) gone: u32,
    /// The number of further watches that cannot be opened.
    pub(crate) away: u32,
    /// The errors of the next reads.
    pub(crate) read_errors: VecDeque<BackendError>,
    /// The most keys that one read returns, if they are limited.
    pub(crate) page_max: Option<u64>,
    /// The number of further leases that are not granted.
    pub(crate) refused: u32,
    /// The number of further writes that happen but are not answered.
    pub(crate) unanswered: u32,
    /// The time until a grant arrives, and the time until its answer comes back.
    pub(crate) grant_takes: [Duration; 2],
    /// The writes of others, each before another transaction.
    pub(crate) others: VecDeque<Txn>,
    /// The leases that were granted, with the time to live that was asked for and the time at which it began.
    pub(crate) granted: Vec<(LeaseId, i64, Instant)>,
}

impl Etcd {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            content: backend(),
            clock: Clock::real(),
            script: Mutex::default(),
            broken: watch::Sender::new(0),
        })
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no test panics under the lock")
    }

    /// Breaks all watches, between two responses.
    pub(crate) fn break_watches(&self) {
        self.broken.send_modify(|count| *count += 1);
    }
}

/// Takes one of a number, if there is one.
fn take(left: &mut u32) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}

fn unavailable() -> BackendError {
    BackendError::Unavailable("as the test says".to_owned())
}

#[async_trait]
impl Backend for Etcd {
    async fn range(&self, mut request: RangeRequest) -> Result<RangeResponse, BackendError> {
        yield_now().await;
        {
            let mut script = self.script();
            if let Some(error) = script.read_errors.pop_front() {
                return Err(error);
            }
            if let Some(most) = script.page_max {
                request.limit = request.limit.min(most);
            }
        }
        let read = self.content.range(request).await;
        yield_now().await;
        read
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        yield_now().await;
        let other = self.script().others.pop_front();
        if let Some(other) = other {
            self.content.txn(other).await?;
        }
        let is_leased = matches!(txn.then, Op::Put { lease: Some(_), .. });
        if is_leased && take(&mut self.script().gone) {
            return Err(BackendError::LeaseNotFound);
        }
        let written = self.content.txn(txn).await;
        yield_now().await;
        if take(&mut self.script().unanswered) {
            return Err(unavailable());
        }
        written
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        yield_now().await;
        if take(&mut self.script().away) {
            return Err(unavailable());
        }
        let responses = self.content.watch(request).await?;
        let broken = self.broken.subscribe();
        let parts = Some((responses, broken));
        let until_broken = stream::unfold(parts, async |parts| {
            let (mut responses, mut broken) = parts?;
            tokio::select! {
                biased;
                _ = broken.changed() => Some((Err(unavailable()), None)),
                response = responses.next() => Some((response?, Some((responses, broken)))),
            }
        });
        Ok(until_broken.boxed())
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        Err(BackendError::NoSpace)
    }

    fn progress_is_trusted(&self) -> bool {
        false
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        let [way, back] = self.script().grant_takes;
        self.clock.sleep(way).await;
        yield_now().await;
        if take(&mut self.script().refused) {
            return Err(unavailable());
        }
        let lease = self.content.grant_lease(ttl_seconds).await?;
        let granted = (lease, ttl_seconds, self.clock.now());
        self.script().granted.push(granted);
        self.clock.sleep(back).await;
        yield_now().await;
        Ok(lease)
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        yield_now().await;
        let compacted = self.content.compact(revision).await;
        yield_now().await;
        compacted
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        self.content.oldest_revision().await
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.content.size_bytes().await
    }
}
