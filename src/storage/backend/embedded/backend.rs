//! The handle of the embedded store.

use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};

use super::commit_loop::{CommitLoop, QUEUE_REQUESTS_MAX};
use super::lease_book::LeaseBook;
use super::log::{Disk, LoadedLog, MemoryLog, RedbLog};
use super::maintenance::Snapshot;
use super::mvcc::State;
use super::open_error::OpenError;
use super::published::{PublishedState, closed_error};
use super::request::{Reply, WriterRequest};
use super::watch::responses;
use super::writer::Writer;
use crate::budget::Ledger;
use crate::clock::{Clock, Instant};
use crate::storage::backend::{
    Backend, BackendError, LeaseId, Op, RangeRequest, RangeResponse, Txn, TxnResponse,
    WatchRequest, WatchResponses,
};
use crate::sync::{Mutex, MutexGuard};

/// Maximum number of bytes of a key and its value together, as in etcd: 1.5 MiB.
const REQUEST_BYTES_MAX: usize = 1_536 * 1_024;

/// Minimum time until a log that failed is tried again.
const RECOVERY_PERIOD: Duration = Duration::from_secs(2);
/// The pause after an attempt, as a multiple of its duration: it reads the whole file, which may be large.
const RECOVERY_PAUSE_FACTOR: u32 = 9;

/// Minimum time between two parts of the log that are compared with what was written there.
const VERIFICATION_PERIOD: Duration = Duration::from_secs(1);
/// The pause after such a part, as a multiple of the time that it took: writes wait meanwhile.
const VERIFICATION_PAUSE_FACTOR: u32 = 49;
/// Maximum pause: the time also has waits for batches and for the disk in it, and damage is to be noticed under load
/// too.
const VERIFICATION_PAUSE_MAX: Duration = Duration::from_secs(10);

/// etcd's data model in this process, durable in a file or in memory alone.
///
/// Leases expire while [`Embedded::run_leases`] runs, a log that failed recovers while [`Embedded::run_recovery`] runs,
/// and damage to a file is noticed while [`Embedded::run_verification`] runs.
///
/// ```
/// use futures::StreamExt;
/// use ringwatch::clock::Clock;
/// use ringwatch::storage::backend::embedded::Embedded;
/// use ringwatch::storage::backend::{
///     Backend, Compare, KeyRange, Op, RangeRequest, Txn, WatchRequest,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = Embedded::in_memory(Clock::real());
///
/// // A write is a transaction: here it succeeds if the key does not exist.
/// let create = Txn {
///     compare: Compare::ModRevision("/registry/a".to_owned(), 0),
///     then: Op::Put {
///         key: "/registry/a".to_owned(),
///         value: b"one"[..].into(),
///         lease: None,
///     },
///     otherwise: None,
/// };
/// let created = backend.txn(create.clone()).await?;
/// assert!(created.succeeded);
/// assert!(!backend.txn(create).await?.succeeded);
///
/// let read = backend.range(RangeRequest::key("/registry/a")).await?;
/// assert_eq!(read.kvs[0].mod_revision, created.revision);
///
/// // A watch begins with the changes from a revision on.
/// let mut watch = backend
///     .watch(WatchRequest {
///         range: KeyRange::prefix("/registry/"),
///         start_revision: created.revision,
///         previous: false,
///         progress: false,
///     })
///     .await?;
/// let response = watch.next().await.expect("the watch is open")?;
/// assert_eq!(response.events[0].kv.key, "/registry/a");
/// # Ok(())
/// # }
/// ```
pub struct Embedded {
    clock: Clock,
    published: Arc<watch::Sender<PublishedState>>,
    /// The time at which the next lease expires.
    expiry: watch::Receiver<Option<Instant>>,
    /// True while the log accepts no writes.
    is_refusing: watch::Receiver<bool>,
    writes: Writes,
}

/// The place where transactions are executed.
enum Writes {
    /// On the caller's task, since nothing has to be made durable.
    Inline(Box<Mutex<Writer>>),
    /// In the commit loop; `None` once closed.
    Queued(Mutex<Option<mpsc::Sender<WriterRequest>>>),
}

impl Embedded {
    /// Creates an empty store in memory.
    #[must_use]
    pub fn in_memory(clock: Clock) -> Self {
        Self::in_memory_with_limits(clock, None, &Ledger::unlimited())
    }

    /// Creates an empty store in memory with the limits of [`CommitLoop::with_limits`].
    #[must_use]
    pub fn in_memory_with_limits(clock: Clock, quota_bytes: Option<u64>, memory: &Ledger) -> Self {
        let log = Box::new(MemoryLog::default());
        let mut writer = Writer::new(State::new(), LeaseBook::default(), log, Vec::new());
        writer.set_limits(quota_bytes, memory);
        Self {
            clock,
            published: writer.published(),
            expiry: writer.expiry(),
            is_refusing: writer.is_refusing(),
            writes: Writes::Inline(Box::new(Mutex::new(writer))),
        }
    }

    /// Opens the store in a file, which is created if it is missing; its folder must exist. Blocks while the file is
    /// read. A file that cannot be written, for instance on a full disk, is opened for reading, and recovers later.
    /// Every lease has its whole time to live again.
    ///
    /// # Errors
    /// [`OpenError`]; the file is not changed then.
    pub fn open(path: &Path, clock: Clock) -> Result<(Self, CommitLoop), OpenError> {
        Ok(Self::over(RedbLog::open(path)?, clock))
    }

    /// Opens the store on a disk other than the system's. What is true of a file for [`Self::open`] is true of it.
    /// The name stands for the path in log messages and errors.
    ///
    /// # Errors
    /// [`OpenError`]; the disk is not changed then.
    pub fn open_on(
        name: &Path,
        disk: impl Disk,
        clock: Clock,
    ) -> Result<(Self, CommitLoop), OpenError> {
        Ok(Self::over(RedbLog::open_on(name, Box::new(disk))?, clock))
    }

    fn over(loaded: LoadedLog, clock: Clock) -> (Self, CommitLoop) {
        let LoadedLog {
            log,
            state,
            obsolete,
            leases,
            refusal,
        } = loaded;
        let book = LeaseBook::from_log(leases, &state, clock.now());
        let mut writer = Writer::new(state, book, Box::new(log), obsolete);
        writer.refuse(refusal);
        let (sender, requests) = mpsc::channel(QUEUE_REQUESTS_MAX);
        let store = Self {
            clock,
            published: writer.published(),
            expiry: writer.expiry(),
            is_refusing: writer.is_refusing(),
            writes: Writes::Queued(Mutex::new(Some(sender))),
        };
        (store, CommitLoop::new(writer, requests))
    }

    /// Deletes the keys of expired leases, until `shutdown` completes or the store is closed. While the log accepts no
    /// writes they stay.
    pub async fn run_leases(&self, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            () = shutdown => {}
            () = self.end_leases() => {}
        }
    }

    async fn end_leases(&self) {
        let mut expiry = self.expiry.clone();
        loop {
            let deadline = *expiry.borrow_and_update();
            tokio::select! {
                changed = expiry.changed() => if changed.is_err() {
                    return;
                },
                () = self.sleep_until(deadline) => {
                    let now = self.clock.now();
                    match self.submit(|reply| WriterRequest::Expire { now, reply }).await {
                        Ok(()) => {}
                        Err(BackendError::Unavailable(_)) => return,
                        Err(error) => {
                            tracing::debug!(%error, "leases cannot be ended now");
                            self.clock.sleep(RECOVERY_PERIOD).await;
                        }
                    }
                }
            }
        }
    }

    /// Tries periodically to recover a log that failed, until `shutdown` completes or the store is closed.
    pub async fn run_recovery(&self, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            () = shutdown => {}
            () = self.recover() => {}
        }
    }

    async fn recover(&self) {
        let mut is_refusing = self.is_refusing.clone();
        let mut pause = RECOVERY_PERIOD;
        while is_refusing.wait_for(|it| *it).await.is_ok() && !self.published.borrow().closed {
            self.clock.sleep(pause).await;
            let now = self.clock.now();
            if let Err(error) = self
                .submit(|reply| WriterRequest::Recover { now, reply })
                .await
            {
                tracing::debug!(%error, "the log still fails");
            }
            let took = self.clock.now() - now;
            pause = recovery_pause(took);
        }
    }

    /// Compares the file with what was written to it, a part of a MiB after the other, until `shutdown` completes or
    /// the store is closed. From the first difference on all writes are refused, until the log recovers; what is in
    /// memory can still be read.
    pub async fn run_verification(&self, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            () = shutdown => {}
            () = self.verify() => {}
        }
    }

    async fn verify(&self) {
        if matches!(self.writes, Writes::Inline(_)) {
            return;
        }
        let mut pause = VERIFICATION_PERIOD;
        loop {
            self.clock.sleep(pause).await;
            let begun = self.clock.now();
            match self.submit(|reply| WriterRequest::Verify { reply }).await {
                Ok(()) => {}
                Err(BackendError::Unavailable(_)) => return,
                Err(error) => tracing::debug!(%error, "the log is not as it was written"),
            }
            let took = self.clock.now() - begun;
            pause = took * VERIFICATION_PAUSE_FACTOR;
            pause = pause.clamp(VERIFICATION_PERIOD, VERIFICATION_PAUSE_MAX);
        }
    }

    /// Returns the reason why the log accepts no writes, without the name of a file; `None` if it does.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let published = self.published.borrow();
        published.refusal.as_ref().map(ToString::to_string)
    }

    /// Returns true if a write was refused because of the quota, and would be again.
    #[must_use]
    pub fn lacks_space(&self) -> bool {
        self.published.borrow().no_space
    }

    /// Returns how many bytes the store's records need; the quota limits this.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.published.borrow().used_bytes
    }

    /// Returns a snapshot of the store: everything acknowledged so far, and nothing of what is not durable.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let published = self.published.borrow();
        Snapshot::new(published.state.clone(), published.leases.clone())
    }

    /// Refuses further writes; those accepted before are still done. Then the commit loop returns, and watches end when
    /// they have sent every event.
    pub fn close(&self) {
        match &self.writes {
            Writes::Inline(writer) => lock(writer).close(),
            Writes::Queued(queue) => drop(lock(queue).take()),
        }
    }

    async fn sleep_until(&self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => self.clock.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Sends a request to the writer and waits until it is durable.
    async fn submit<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> WriterRequest,
    ) -> Result<T, BackendError> {
        let (reply, outcome) = oneshot::channel();
        let request = request(reply);
        match &self.writes {
            Writes::Inline(writer) => {
                let mut writer = lock(writer);
                writer.commit(vec![request]);
                while writer.has_removals() {
                    writer.commit(Vec::new());
                }
            }
            Writes::Queued(queue) => {
                let queue = lock(queue).clone().ok_or_else(closed_error)?;
                queue.send(request).await.map_err(|_| closed_error())?;
            }
        }
        outcome.await.map_err(|_| closed_error())?
    }
}

/// Locks a mutex. A writer that panicked under it has published nothing of the batch at hand, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Backend for Embedded {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        let state = self.published.borrow().state.clone();
        state.range(&request)
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        for op in std::iter::once(&txn.then).chain(&txn.otherwise) {
            check_size(op)?;
        }
        self.submit(|reply| WriterRequest::Txn(txn, reply)).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        Ok(responses(request, self.published.subscribe()))
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        self.published.send_modify(|it| it.progress_requests += 1);
        Ok(())
    }

    fn progress_is_trusted(&self) -> bool {
        true
    }

    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        let now = self.clock.now();
        self.submit(|reply| WriterRequest::Grant {
            ttl_seconds,
            now,
            reply,
        })
        .await
    }

    async fn compact(&self, revision: u64) -> Result<(), BackendError> {
        self.submit(|reply| WriterRequest::Compact { revision, reply })
            .await
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        // Nothing is compacted at first, and the revision of the empty store is the first one.
        Ok(self.published.borrow().state.compacted().max(1))
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        self.published.borrow().size_bytes.clone()
    }
}

/// Checks a write against the limit of its size, with etcd's error.
fn check_size(op: &Op) -> Result<(), BackendError> {
    match op {
        Op::Put { key, value, .. } if key.len() + value.len() > REQUEST_BYTES_MAX => Err(
            BackendError::TooLarge("etcdserver: request is too large".to_owned()),
        ),
        _ => Ok(()),
    }
}

impl Debug for Embedded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("state", &self.published.borrow().state)
            .finish_non_exhaustive()
    }
}

/// Returns the pause after an attempt to recover that took so long.
fn recovery_pause(took: Duration) -> Duration {
    RECOVERY_PERIOD.max(took * RECOVERY_PAUSE_FACTOR)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::StreamExt;
    use ringwatch_testing::disk::{Disk, Fault, FaultKind};

    use super::*;
    use crate::storage::backend::{Compare, KeyRange};

    /// Writes a key, and returns the outcome.
    async fn write(store: &Embedded, key: &str) -> Result<TxnResponse, BackendError> {
        let txn = Txn {
            compare: Compare::ModRevision(key.to_owned(), 0),
            then: Op::Put {
                key: key.to_owned(),
                value: vec![0; 100].into(),
                lease: None,
            },
            otherwise: None,
        };
        store.txn(txn).await
    }

    #[tokio::test]
    async fn what_records_take_is_known() {
        let store = Embedded::in_memory(Clock::real());
        assert_eq!(store.used_bytes(), 0);
        write(&store, "/a").await.expect("a write");
        let one = store.used_bytes();
        assert!((100..1_000).contains(&one), "{one}");
        write(&store, "/b").await.expect("a write");
        assert_eq!(store.used_bytes(), 2 * one);
        assert_eq!(store.size_bytes().await, Ok(2 * one));
    }

    /// A server that was killed for want of memory must not want as much again when it is started.
    #[tokio::test]
    async fn a_crash_brings_no_more_of_the_history_back_than_was_kept() {
        const WRITES: u64 = 40;
        let disk = Disk::new(1);
        let open = || Embedded::open_on(Path::new("log"), disk.clone(), Clock::real());
        let (store, commits) = open().expect("a store");
        let mut commits = commits.with_limits(None, &Ledger::new(128 << 20));
        let work = async {
            for revision in 1..=WRITES {
                let txn = Txn {
                    compare: Compare::Version("/a".to_owned(), revision - 1),
                    then: Op::Put {
                        key: "/a".to_owned(),
                        value: vec![0; 1 << 20].into(),
                        lease: None,
                    },
                    otherwise: None,
                };
                let written = store.txn(txn).await;
                assert!(written.expect("a write").succeeded);
            }
            store.close();
        };
        tokio::join!(work, async { while commits.write_batch().await {} });
        let used = store.used_bytes();
        assert!(used < 40 << 20, "{used}");
        drop(commits);
        let (store, _commits) = open().expect("a store");
        let state = store.published.borrow().state.clone();
        assert!(
            state.history_bytes() <= 16 << 20,
            "{}",
            state.history_bytes()
        );
        assert_eq!(state.revision(), WRITES + 1);
        let old = RangeRequest {
            revision: state.compacted() - 1,
            ..RangeRequest::key("/a")
        };
        let expired = store.range(old).await.expect_err("it is compacted");
        assert!(
            matches!(expired, BackendError::Compacted { .. }),
            "{expired}"
        );
        let watch = WatchRequest {
            range: KeyRange::Key("/a".to_owned()),
            start_revision: state.compacted(),
            previous: false,
            progress: false,
        };
        let mut watch = store.watch(watch).await.expect("a watch");
        let first = watch.next().await.expect("it goes on");
        assert!(!first.expect("events").events.is_empty());
    }

    #[test]
    fn recovery_takes_a_tenth_of_the_time() {
        let pauses = [0, 100, 1_000].map(|took| recovery_pause(Duration::from_millis(took)));
        assert_eq!(pauses, [2, 2, 9].map(Duration::from_secs));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_fails_recovers_by_itself_until_it_is_closed() {
        let disk = Disk::new(1);
        let clock = Clock::real();
        let opened = Embedded::open_on(Path::new("log"), disk.clone(), clock.clone());
        let (store, mut commits) = opened.expect("a store");
        let work = async {
            write(&store, "/a").await.expect("a write");
            let kind = FaultKind::UntilMended;
            disk.fail(Fault { after: 0, kind });
            write(&store, "/b").await.expect_err("the disk is full");
            assert!(store.refusal().is_some_and(|it| !it.is_empty()));
            clock.sleep(RECOVERY_PERIOD * 3).await;
            let tried = disk.failures();
            assert!(tried > 1, "it is tried again");
            disk.mend();
            clock.sleep(RECOVERY_PERIOD * 2).await;
            assert_eq!(store.refusal(), None);
            write(&store, "/b").await.expect("a write");
            store.close();
        };
        let recovery = store.run_recovery(std::future::pending());
        // It closes the store when it is dropped.
        let commits = async move { while commits.write_batch().await {} };
        tokio::join!(work, recovery, commits);
    }

    /// Nobody reads these pages, and without a verification every write would be taken, and lost at the next start.
    #[tokio::test(start_paused = true)]
    async fn damage_to_the_file_is_noticed_while_everything_is_still_in_memory() {
        let disk = Disk::new(1);
        let clock = Clock::real();
        let opened = Embedded::open_on(Path::new("log"), disk.clone(), clock.clone());
        let (store, mut commits) = opened.expect("a store");
        let work = async {
            for name in ["/a", "/b", "/c"] {
                write(&store, name).await.expect("a write");
            }
            let sweep = VERIFICATION_PERIOD * 20;
            clock.sleep(sweep).await;
            assert_eq!(store.refusal(), None);
            let len = usize::try_from(disk.size_bytes().expect("a size")).expect("a small one");
            let mut before = vec![0; len];
            disk.read(0, &mut before).expect("the file");
            for page in (4_096..len as u64).step_by(4_096) {
                disk.write(page + 100, &[0xa5; 16])
                    .expect("a disk that works");
            }
            clock.sleep(sweep).await;
            let refusal = store.refusal().expect("it is noticed");
            assert!(refusal.contains("damaged at byte"), "{refusal}");
            write(&store, "/d").await.expect_err("it would be lost");
            let all = RangeRequest::all(KeyRange::prefix("/"));
            let read = store.range(all).await.expect("all of it");
            assert_eq!(read.kvs.len(), 3, "it can still be saved");
            disk.write(0, &before).expect("a disk that works");
            clock.sleep(sweep).await;
            assert_eq!(store.refusal(), None, "it is whole again");
            write(&store, "/d").await.expect("a write");
            store.close();
        };
        let recovery = store.run_recovery(std::future::pending());
        let verification = store.run_verification(std::future::pending());
        let commits = async move { while commits.write_batch().await {} };
        tokio::join!(work, recovery, verification, commits);
    }

    #[tokio::test(start_paused = true)]
    async fn leases_that_cannot_be_ended_are_ended_when_the_log_has_recovered() {
        let disk = Disk::new(1);
        let clock = Clock::real();
        let opened = Embedded::open_on(Path::new("log"), disk.clone(), clock.clone());
        let (store, mut commits) = opened.expect("a store");
        let work = async {
            let lease = store.grant_lease(10).await.expect("a lease");
            let txn = Txn {
                compare: Compare::ModRevision("/a".to_owned(), 0),
                then: Op::Put {
                    key: "/a".to_owned(),
                    value: Bytes::new(),
                    lease: Some(lease),
                },
                otherwise: None,
            };
            store.txn(txn).await.expect("a write");
            let kind = FaultKind::UntilMended;
            disk.fail(Fault { after: 0, kind });
            clock.sleep(Duration::from_secs(30)).await;
            assert!(store.refusal().is_some(), "the lease cannot be ended");
            disk.mend();
            // The lease has its whole time again.
            clock.sleep(Duration::from_secs(30)).await;
            let left = store.range(RangeRequest::key("/a")).await;
            assert_eq!(left.expect("a read").kvs, []);
            store.close();
        };
        let leases = store.run_leases(std::future::pending());
        let recovery = store.run_recovery(std::future::pending());
        let commits = async move { while commits.write_batch().await {} };
        tokio::join!(work, leases, recovery, commits);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_happens_while_no_lease_is_due() {
        let clock = Clock::real();
        let store = Embedded::in_memory(clock.clone());
        let hour = Duration::from_secs(3_600);
        store.run_leases(clock.sleep(hour)).await;
        store.grant_lease(60).await.expect("a lease");
        let begun = clock.now();
        store.run_leases(clock.sleep(hour)).await;
        assert_eq!(clock.now() - begun, hour);
    }

    #[test]
    fn a_write_has_etcds_limit_of_its_size() {
        let put = |key: usize, value: usize| Op::Put {
            key: "k".repeat(key),
            value: vec![0; value].into(),
            lease: None,
        };
        assert_eq!(check_size(&put(10, REQUEST_BYTES_MAX - 10)), Ok(()));
        assert_eq!(check_size(&put(1_000, 1_000)), Ok(()));
        for too_large in [put(11, REQUEST_BYTES_MAX - 10), put(REQUEST_BYTES_MAX, 1)] {
            let refused = check_size(&too_large);
            assert!(
                matches!(refused, Err(BackendError::TooLarge(_))),
                "{refused:?}"
            );
        }
    }
}
