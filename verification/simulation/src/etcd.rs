//! A cluster of etcd as the server sees it: its leaders change, its members lag, it cancels watches, compacts and runs
//! out of space.
//!
//! The content is that of an embedded store in memory, which is always right. What is simulated is the way there: a
//! write may happen and not be answered, or not happen; events come late, but in order; progress comes late too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, Stream, StreamExt};
use rand::Rng;
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{
    Backend, BackendError, LeaseId, Op, RangeRequest, RangeResponse, Txn, TxnResponse,
    WatchRequest, WatchResponse, WatchResponses,
};
use tokio::sync::watch;

/// The longest way of a request to the cluster and back.
const WAY_MAX: Duration = Duration::from_millis(5);
/// A request waits so long for a leader.
const LEADER_WAIT_MAX: Duration = Duration::from_secs(2);
/// The number of writes, among those that meet a change of leaders, of which one happens without an answer.
const HAPPENS_ONE_OF: u32 = 2;

/// A simulated cluster.
#[derive(Debug)]
pub(crate) struct Etcd {
    truth: Embedded,
    clock: Clock,
    is_progress_trusted: bool,
    health: Arc<Mutex<Health>>,
    /// Counts how often all watches were cancelled.
    cancelled: watch::Sender<u64>,
}

/// The state of the cluster.
#[derive(Debug, Default)]
struct Health {
    leaderless_until: Option<Instant>,
    full_until: Option<Instant>,
    /// The time by which watches lag, and the instant until which they do.
    lag: Option<(Duration, Instant)>,
}

impl Etcd {
    pub(crate) fn new(clock: Clock, is_progress_trusted: bool) -> Self {
        Self {
            truth: Embedded::in_memory(clock.clone()),
            clock,
            is_progress_trusted,
            health: Arc::default(),
            cancelled: watch::Sender::new(0),
        }
    }

    /// Has no leader for a time.
    pub(crate) fn lose_leader(&self, lasts: Duration) {
        self.health().leaderless_until = Some(self.clock.now() + lasts);
    }

    /// Has the watches lag for a time.
    pub(crate) fn lag(&self, by: Duration, lasts: Duration) {
        self.health().lag = Some((by, self.clock.now() + lasts));
    }

    /// Accepts only deletions for a time.
    pub(crate) fn run_out_of_space(&self, lasts: Duration) {
        self.health().full_until = Some(self.clock.now() + lasts);
    }

    /// Ends all watches.
    pub(crate) fn cancel_watches(&self) {
        self.cancelled.send_modify(|count| *count += 1);
    }

    /// Compacts all revisions away but so many newest. The store in memory does it at once.
    pub(crate) fn compact_but(&self, kept: u64) {
        let compacting = async {
            let newest = self.truth.range(RangeRequest::key("/")).await?.revision;
            self.truth.compact(newest.saturating_sub(kept)).await
        };
        // It may be compacted further already.
        let _ = futures::executor::block_on(compacting);
    }

    /// Deletes the keys of expired leases, until it is aborted.
    pub(crate) async fn run_leases(&self) {
        self.truth.run_leases(std::future::pending()).await;
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }

    /// Passes the time of half a way.
    async fn travel(&self) {
        let half = rand::rng().random_range(Duration::ZERO..WAY_MAX) / 2;
        self.clock.sleep(half).await;
    }

    /// Waits for a leader.
    ///
    /// # Errors
    /// There is none for a time.
    async fn leader(&self) -> Result<(), BackendError> {
        let waited_until = self.clock.now() + LEADER_WAIT_MAX;
        loop {
            let leaderless_until = self.health().leaderless_until;
            match leaderless_until {
                Some(until) if until > waited_until => {
                    self.clock.sleep_until(waited_until).await;
                    return Err(no_leader());
                }
                Some(until) if until > self.clock.now() => self.clock.sleep_until(until).await,
                _ => return Ok(()),
            }
        }
    }
}

impl Health {
    /// Returns by how much watches lag at a time.
    fn lag_at(&self, now: Instant) -> Duration {
        let lag = self.lag.filter(|(_, until)| *until > now);
        lag.map_or(Duration::ZERO, |(by, _)| by)
    }
}

fn lock(health: &Mutex<Health>) -> MutexGuard<'_, Health> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_leader() -> BackendError {
    BackendError::Unavailable("etcdserver: no leader".to_owned())
}

#[async_trait]
impl Backend for Etcd {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        self.travel().await;
        self.leader().await?;
        let response = self.truth.range(request).await;
        self.travel().await;
        response
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        self.travel().await;
        self.leader().await?;
        let now = self.clock.now();
        let is_full = self.health().full_until.is_some_and(|until| until > now);
        if is_full && matches!(txn.then, Op::Put { .. }) {
            return Err(BackendError::NoSpace);
        }
        // The leader may change while the write is on its way to the others.
        self.travel().await;
        let now = self.clock.now();
        let is_lost = self
            .health()
            .leaderless_until
            .is_some_and(|until| until > now);
        if is_lost && rand::rng().random_ratio(1, HAPPENS_ONE_OF) {
            return Err(no_leader());
        }
        let response = self.truth.txn(txn).await;
        if is_lost {
            return Err(BackendError::Timeout(
                "etcdserver: request timed out".to_owned(),
            ));
        }
        self.travel().await;
        response
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        self.travel().await;
        self.leader().await?;
        let responses = self.truth.watch(request).await?;
        let member = Member {
            responses,
            cancelled: self.cancelled.subscribe(),
            clock: self.clock.clone(),
            health: Arc::clone(&self.health),
            is_progress_trusted: self.is_progress_trusted,
            waiting: VecDeque::new(),
            is_over: false,
        };
        Ok(member.responses().boxed())
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.travel().await;
        self.truth.request_progress().await
    }

    fn progress_is_trusted(&self) -> bool {
        self.is_progress_trusted
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        self.travel().await;
        self.leader().await?;
        self.truth.grant_lease(ttl_seconds).await
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.travel().await;
        self.leader().await?;
        self.truth.compact(revision).await
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        self.travel().await;
        self.truth.oldest_revision().await
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.truth.size_bytes().await
    }
}

/// The member of the cluster from which a watch has its responses.
struct Member {
    /// The responses of a member that does not lag.
    responses: WatchResponses,
    cancelled: watch::Receiver<u64>,
    clock: Clock,
    health: Arc<Mutex<Health>>,
    is_progress_trusted: bool,
    /// Responses that this member has not sent, and when it will.
    waiting: VecDeque<(Instant, WatchResponse)>,
    is_over: bool,
}

impl Member {
    fn responses(self) -> impl Stream<Item = Result<WatchResponse, BackendError>> + Send {
        stream::unfold(self, |mut member| async {
            let response = member.next().await?;
            Some((response, member))
        })
    }

    async fn next(&mut self) -> Option<Result<WatchResponse, BackendError>> {
        while !self.is_over {
            let due = self.waiting.front().map(|(due, _)| *due);
            tokio::select! {
                biased;
                _ = self.cancelled.changed() => {
                    self.is_over = true;
                    let why = "etcdserver: the watch was cancelled".to_owned();
                    return Some(Err(BackendError::Unavailable(why)));
                }
                () = until(due, &self.clock) => return self.waiting.pop_front().map(|(_, it)| Ok(it)),
                response = self.responses.next() => match response {
                    Some(Ok(response)) => {
                        // Before 3.5.8, progress of etcd overtook events.
                        if response.events.is_empty() && !self.is_progress_trusted {
                            return Some(Ok(response));
                        }
                        self.put_off(response);
                    }
                    end => {
                        self.is_over = true;
                        return end;
                    }
                },
            }
        }
        None
    }

    /// Sends a response after all earlier ones, and after the lag at this time.
    fn put_off(&mut self, response: WatchResponse) {
        let now = self.clock.now();
        let way = rand::rng().random_range(Duration::ZERO..WAY_MAX);
        let due = now + way + lock(&self.health).lag_at(now);
        let due = self.waiting.back().map_or(due, |(last, _)| due.max(*last));
        self.waiting.push_back((due, response));
    }
}

async fn until(due: Option<Instant>, clock: &Clock) {
    match due {
        Some(due) => clock.sleep_until(due).await,
        None => std::future::pending().await,
    }
}
