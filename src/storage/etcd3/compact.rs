//! Periodic compaction, coordinated with all other servers on the same store.
//!
//! Once an interval every server tries to write the revision that it saw an interval ago into one key, if no other
//! server has written it since the last time it looked. The server that succeeds compacts to that revision; the others
//! record what was written. So there is one compaction an interval, and between one and two intervals of history are
//! kept. The value of the key is the revision up to which history is compacted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::watch;

use super::compaction_metrics::CompactionMetrics;
use crate::clock::Clock;
use crate::storage::backend::{
    Backend, BackendError, Compare, KeyRange, KeyValue, Op, RangeRequest, Txn, WatchRequest,
};

/// The key by which servers coordinate. kube-apiserver uses the same.
const COMPACT_REV_KEY: &str = "compact_rev_key";
/// The time to wait before the key is watched again after a failure.
const FOLLOW_PAUSE: Duration = Duration::from_secs(5);

/// Compacts a backend periodically, and follows up to which revision it is compacted.
#[derive(Debug)]
pub struct Compactor {
    backend: Arc<dyn Backend>,
    /// The time between two compactions; `None` if this server does not compact.
    interval: Option<Duration>,
    clock: Clock,
    compacted: watch::Sender<u64>,
    metrics: CompactionMetrics,
}

/// The state that a server keeps from one round to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    /// The version of the key when it was last seen; 0 before it is there.
    version: u64,
    /// The newest revision at that time; 0 before the first round, in which nothing is compacted.
    revision: u64,
}

impl Compactor {
    /// Creates a compactor of a backend; without an interval it only follows the compactions of others.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, interval: Option<Duration>, clock: Clock) -> Self {
        Self {
            backend,
            interval,
            clock,
            compacted: watch::Sender::new(0),
            metrics: CompactionMetrics::default(),
        }
    }

    /// Returns the compactor, which counts its compactions in these metrics.
    #[must_use]
    pub fn counted(self, metrics: &CompactionMetrics) -> Self {
        Self {
            metrics: metrics.clone(),
            ..self
        }
    }

    /// Returns a receiver of the revision up to which history is known to be compacted; 0 if none is.
    #[must_use]
    pub fn compact_revision(&self) -> watch::Receiver<u64> {
        self.compacted.subscribe()
    }

    /// Runs until `shutdown` completes.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            () = self.take_turns() => {}
            () = self.follow() => {}
        }
    }

    async fn take_turns(&self) {
        let Some(interval) = self.interval else {
            return std::future::pending().await;
        };
        let mut last = Round::default();
        loop {
            self.clock.sleep(interval).await;
            match self.round(last).await {
                Ok(next) => last = next,
                Err(error) => {
                    self.metrics.failed.inc();
                    tracing::warn!(%error, "compaction failed, will be tried again");
                }
            }
        }
    }

    /// Runs one round.
    async fn round(&self, last: Round) -> Result<Round, BackendError> {
        let key = COMPACT_REV_KEY.to_owned();
        let txn = Txn {
            compare: Compare::Version(key.clone(), last.version),
            then: Op::Put {
                key: key.clone(),
                value: Bytes::from(last.revision.to_string()),
                lease: None,
            },
            otherwise: Some(Op::Get { key }),
        };
        let response = match self.backend.txn(txn).await {
            Err(BackendError::NoSpace) => return self.round_without_turn(last).await,
            response => response?,
        };
        let mut next = Round {
            version: last.version + 1,
            revision: response.revision,
        };
        if !response.succeeded {
            next.version = response.found.as_ref().map_or(0, |kv| kv.version);
            if let Some(kv) = response.found {
                self.publish(&kv);
            }
            return Ok(next);
        }
        // The round counts even if the compaction fails: the key has been written.
        self.compact(last.revision).await;
        Ok(next)
    }

    /// Runs a round in which no server can write the key, since the quota of the store is reached. Compaction is how
    /// the store gets below its quota again, so it is not coordinated then.
    async fn round_without_turn(&self, last: Round) -> Result<Round, BackendError> {
        let read = RangeRequest::key(COMPACT_REV_KEY);
        let read = self.backend.range(read).await?;
        if self.compact(last.revision).await {
            self.publish_revision(last.revision);
        }
        Ok(Round {
            version: read.kvs.first().map_or(0, |kv| kv.version),
            revision: read.revision,
        })
    }

    /// Compacts to a revision unless that is 0. Returns true if history up to there is compacted.
    async fn compact(&self, revision: u64) -> bool {
        if revision == 0 {
            return false;
        }
        match self.backend.compact(revision).await {
            Ok(()) | Err(BackendError::Compacted { .. }) => {
                self.metrics.done.inc();
                true
            }
            Err(error) => {
                self.metrics.failed.inc();
                tracing::warn!(%error, revision, "cannot compact");
                false
            }
        }
    }

    /// Watches the key, whichever server writes it.
    async fn follow(&self) {
        loop {
            if let Err(error) = self.follow_once().await {
                tracing::debug!(%error, "cannot watch the compacted revision");
            }
            self.clock.sleep(FOLLOW_PAUSE).await;
        }
    }

    async fn follow_once(&self) -> Result<(), BackendError> {
        let read = self
            .backend
            .range(RangeRequest::key(COMPACT_REV_KEY))
            .await?;
        if let Some(kv) = read.kvs.first() {
            self.publish(kv);
        }
        let request = WatchRequest {
            range: KeyRange::Key(COMPACT_REV_KEY.to_owned()),
            start_revision: read.revision + 1,
            previous: false,
            progress: false,
        };
        let mut responses = self.backend.watch(request).await?;
        while let Some(response) = responses.next().await {
            for event in response?.events {
                self.publish(&event.kv);
            }
        }
        Ok(())
    }

    /// Publishes the revision in the key, unless a later one is known already.
    fn publish(&self, kv: &KeyValue) {
        let text = std::str::from_utf8(&kv.value).unwrap_or_default();
        if let Ok(revision) = text.parse::<u64>() {
            self.publish_revision(revision);
        }
    }

    fn publish_revision(&self, revision: u64) {
        self.compacted.send_if_modified(|known| {
            let rises = revision > *known;
            *known = revision.max(*known);
            rises
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Ledger;
    use crate::storage::backend::embedded::Embedded;
    use crate::storage::etcd3::tests::etcd::Etcd;

    fn server(backend: &Arc<Embedded>) -> Compactor {
        let backend = Arc::clone(backend);
        Compactor::new(backend, Some(Duration::from_secs(300)), Clock::real())
    }

    async fn write(backend: &Embedded, key: &str) -> u64 {
        let txn = Txn {
            compare: Compare::Version(key.to_owned(), 0),
            then: Op::Put {
                key: key.to_owned(),
                value: Bytes::new(),
                lease: None,
            },
            otherwise: None,
        };
        backend.txn(txn).await.expect("a write").revision
    }

    async fn is_compacted(backend: &Embedded, revision: u64) -> bool {
        let read = RangeRequest {
            revision,
            ..RangeRequest::key("a")
        };
        matches!(
            backend.range(read).await,
            Err(BackendError::Compacted { .. })
        )
    }

    #[tokio::test]
    async fn only_a_later_revision_is_news() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let server = server(&backend);
        let mut news = server.compacted.subscribe();
        for (revision, known, is_news) in [(5, 5, true), (5, 5, false), (3, 5, false), (6, 6, true)]
        {
            server.publish_revision(revision);
            assert_eq!(news.has_changed().expect("a sender"), is_news, "{revision}");
            assert_eq!(*news.borrow_and_update(), known);
        }
    }

    /// A watch that began before what has been read would end at once.
    #[tokio::test]
    async fn the_compacted_revision_is_followed_from_the_newest_revision_on() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let server = server(&backend);
        let newest = write(&backend, "a").await;
        backend.compact(newest).await.expect("compacted");
        let mut following = Box::pin(server.follow_once());
        for _ in 0..100 {
            let ended = futures::poll!(&mut following);
            assert!(ended.is_pending(), "{ended:?}");
            tokio::task::yield_now().await;
        }
    }

    /// A server that starts, or has lost its watch, need not wait for the next compaction.
    #[tokio::test]
    async fn what_was_compacted_before_is_known_at_once() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let old = server(&backend);
        let mut round = Round::default();
        for _ in 0..2 {
            round = old.round(round).await.expect("a round");
        }
        let new = server(&backend);
        let mut following = Box::pin(new.follow_once());
        for _ in 0..100 {
            assert!(futures::poll!(&mut following).is_pending());
            tokio::task::yield_now().await;
        }
        // The key has what the first round saw.
        assert_eq!(*new.compact_revision().borrow(), 2);
        old.round(round).await.expect("a round");
        assert!(futures::poll!(&mut following).is_pending());
        assert_eq!(*new.compact_revision().borrow(), 3);
    }

    #[tokio::test]
    async fn the_winner_compacts_to_what_it_saw_an_interval_ago() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let (one, two) = (server(&backend), server(&backend));
        let first = write(&backend, "a").await;
        let mut ones = one.round(Round::default()).await.expect("a round");
        let mut twos = two.round(Round::default()).await.expect("a round");
        let seen = ones.revision;
        assert_eq!((ones.version, twos.version), (1, 1));
        write(&backend, "b").await;
        assert!(
            !is_compacted(&backend, first).await,
            "the first round compacts nothing"
        );

        ones = one.round(ones).await.expect("a round");
        twos = two.round(twos).await.expect("a round");
        assert_eq!(
            (ones.version, twos.version),
            (2, 2),
            "the second takes note"
        );
        assert!(is_compacted(&backend, seen - 1).await);
        assert!(
            !is_compacted(&backend, seen).await,
            "that revision can still be read"
        );
        assert_eq!(*two.compact_revision().borrow(), seen, "the loser knows");

        // Now the other one is first.
        let seen = twos.revision;
        two.round(twos).await.expect("a round");
        let ones = one.round(ones).await.expect("a round");
        assert_eq!(ones.version, 3);
        assert!(is_compacted(&backend, seen - 1).await);
    }

    #[tokio::test]
    async fn a_quota_that_is_reached_does_not_keep_from_compacting() {
        let quota = Some(4_000);
        let backend = Arc::new(Embedded::in_memory_with_limits(
            Clock::real(),
            quota,
            &Ledger::unlimited(),
        ));
        let server = server(&backend);
        let mut round = server.round(Round::default()).await.expect("a round");
        let put = async |number: u32| {
            let txn = Txn {
                compare: Compare::Version("/never".to_owned(), 0),
                then: Op::Put {
                    key: "a".to_owned(),
                    value: Bytes::from_static(b"x"),
                    lease: None,
                },
                otherwise: None,
            };
            backend.txn(txn).await.map(|_| number)
        };
        let mut refused = Ok(0);
        for number in 0..100 {
            refused = put(number).await;
            if refused.is_err() {
                break;
            }
        }
        assert_eq!(refused, Err(BackendError::NoSpace));
        assert!(backend.lacks_space());
        for _ in 0..2 {
            round = server.round(round).await.expect("a round");
        }
        assert!(*server.compact_revision().borrow() > 0);
        assert!(!backend.lacks_space());
        put(100).await.expect("room again");
    }

    #[tokio::test]
    async fn compactions_are_counted_by_their_outcome() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let mut registry = prometheus_client::registry::Registry::default();
        let server = server(&backend).counted(&CompactionMetrics::register(&mut registry));
        let mut round = Round::default();
        for _ in 0..3 {
            round = server.round(round).await.expect("a round");
        }
        assert!(!server.compact(u64::MAX).await, "nothing is so new");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in [
            "ringwatch_compactions_total 2",
            "ringwatch_compaction_failures_total 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }

    #[tokio::test]
    async fn a_new_server_finds_its_place() {
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let old = server(&backend);
        let mut round = Round::default();
        for _ in 0..3 {
            round = old.round(round).await.expect("a round");
        }
        let new = server(&backend);
        let found = new.round(Round::default()).await.expect("a round");
        assert_eq!(found.version, 3);
        assert!(*new.compact_revision().borrow() > 0);
    }
    /// A step of servers that share an etcd.
    #[derive(Clone, Debug)]
    enum Step {
        /// One of the servers has its turn, of which the answer may be lost.
        Turn { server: usize, is_answered: bool },
        /// The key is as a snapshot had it, which was written so often.
        PutBack { version: u64 },
    }

    const SERVERS: usize = 3;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..SERVERS, prop::bool::weighted(0.8))
                .prop_map(|(server, is_answered)| Step::Turn { server, is_answered }),
            1 => (0..6_u64).prop_map(|version| Step::PutBack { version }),
        ];
        proptest::collection::vec(step, 0..20)
    }

    /// Gives a server its turn, from which it remembers what it can.
    async fn turn(server: &Compactor, last: &mut Round) {
        if let Ok(next) = server.round(*last).await {
            *last = next;
        }
    }

    /// Whatever has happened, a server that has the turns to itself compacts in the second to what it saw in the first.
    async fn a_server_that_is_left_alone_compacts(steps: Vec<Step>) {
        let etcd = Etcd::new();
        let servers = [(); SERVERS].map(|()| {
            let backend = Arc::clone(&etcd) as Arc<dyn Backend>;
            Compactor::new(backend, Some(Duration::from_secs(300)), Clock::real())
        });
        let mut rounds = [Round::default(); SERVERS];
        for step in steps {
            match step {
                Step::Turn {
                    server,
                    is_answered,
                } => {
                    etcd.script().unanswered = u32::from(!is_answered);
                    turn(&servers[server], &mut rounds[server]).await;
                }
                Step::PutBack { version } => {
                    let key = COMPACT_REV_KEY.to_owned();
                    let put = Op::Put {
                        key: key.clone(),
                        value: Bytes::from_static(b"1"),
                        lease: None,
                    };
                    let puts = (0..version).map(|_| put.clone());
                    for op in std::iter::once(Op::Delete { key }).chain(puts) {
                        let txn = Txn {
                            compare: Compare::Version("/never".to_owned(), 0),
                            then: op,
                            otherwise: None,
                        };
                        etcd.content.txn(txn).await.expect("a write");
                    }
                }
            }
        }
        turn(&servers[0], &mut rounds[0]).await;
        let seen = rounds[0].revision;
        turn(&servers[0], &mut rounds[0]).await;
        assert!(is_compacted(&etcd.content, seen - 1).await, "up to {seen}");
        assert!(!is_compacted(&etcd.content, seen).await, "beyond {seen}");
        let known = servers[0].compact_revision();
        assert!(*known.borrow() <= seen);
    }

    proptest! {
        #[test]
        fn whatever_happened_the_next_turns_compact(steps in steps()) {
            futures::executor::block_on(a_server_that_is_left_alone_compacts(steps));
        }
    }
}
