//! The feed's work: list the types, then follow their changes.
//!
//! ```text
//!   Listing --all at one revision--> Opening --stream--> Following
//!      ^  ^                          ^  |                 |   |
//!      |  +--- history is gone ------+--+-----------------+   |
//!      +-- failed, wait                 +---- it broke -------+
//! ```
//!
//! The first list is of some time ago, as far as the store's history reaches, and the changes since
//! then are followed before anything is served. So the windows are full from the first moment, and
//! clients that were following before a restart go on where they were.
//!
//! A stream that breaks is resumed after the last revision; nothing is listed again and no watch
//! notices. Only when the history after that revision is gone do all types start over: their
//! watches end, and clients come back to be told where to begin.
//!
//! Types that are added later are listed at the store's newest revision while the stream waits. So
//! every change that comes after it is new to them, and what came before it is in the list.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::feed::FeedShared;
use super::filter::folders;
use super::watch_cache::{Filling, WatchCache};
use crate::clock::Instant;
use crate::ring::waiters::Publisher;
use crate::storage::{Change, ChangeBatch, ChangeStream, StorageError};

/// How many objects are listed at a time.
const LIST_PAGE_OBJECTS: u32 = 10_000;

/// How many revisions before the newest the first list may be, the farthest first. The history of a
/// quiet store may be compacted closer to its end than the farthest.
const WARM_START_REVISIONS: [u64; 5] = [10_000, 1_000, 100, 10, 0];

/// How often progress is asked for until the changes since the first list have come.
const CATCH_UP_PERIOD: Duration = Duration::from_millis(100);

/// The least and the longest time between attempts, before jitter.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// How often windows are looked at for events that have become too old.
const EXPIRY_PERIOD: Duration = Duration::from_secs(15);

/// The writing side of a [`super::Feed`]: the only one who changes the caches.
#[derive(Debug)]
pub struct Reflector {
    feed: Arc<FeedShared>,
    /// Publishes the revision that all listed types have reached.
    publisher: Publisher,
    /// The types that are followed.
    types: Vec<WatchCache>,
    /// Where each prefix's type stands in `types`.
    by_prefix: HashMap<Box<str>, usize>,
    /// The revision at which what was listed a while ago is served; `None` once it is.
    serve_from: Option<u64>,
    /// When newcomers that could not be listed are tried again, and how often they have been.
    retry: Option<(Instant, u32)>,
}

/// What the reflector does next. `attempt` counts the failures in a row.
enum State {
    /// List all types.
    Listing { attempt: u32 },
    /// Open the stream after the last revision.
    Opening { attempt: u32 },
    /// Apply what comes.
    Following { stream: ChangeStream, attempt: u32 },
}

impl Reflector {
    /// A reflector with nothing to do yet.
    pub(super) fn new(feed: Arc<FeedShared>, publisher: Publisher) -> Self {
        Self {
            feed,
            publisher,
            types: Vec::new(),
            by_prefix: HashMap::new(),
            serve_from: None,
            retry: None,
        }
    }

    /// Fills the caches and keeps them current until `shutdown` completes. Then all types stop.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send) {
        let feed = Arc::clone(&self.feed);
        tokio::select! {
            () = shutdown => {}
            () = self.reflect() => {}
            () = feed.serve_probes() => {}
            () = feed.ask_for_progress() => {}
            () = feed.send_bookmarks() => {}
        }
    }

    /// Goes from state to state. Never completes.
    async fn reflect(&mut self) {
        let mut state = State::Listing { attempt: 0 };
        loop {
            state = match state {
                State::Listing { attempt } => self.list(attempt).await,
                State::Opening { attempt } => self.open(attempt).await,
                State::Following { stream, attempt } => self.follow(stream, attempt).await,
            };
        }
    }

    /// Lists all types at one revision.
    async fn list(&mut self, attempt: u32) -> State {
        self.back_off(attempt).await;
        let newcomers = self.feed.take_newcomers();
        self.adopt(newcomers);
        let mut types = std::mem::take(&mut self.types);
        let listed = self.list_as_of_some_time_ago(&mut types).await;
        self.types = types;
        match listed {
            Ok((revision, newest)) => {
                self.serve_from = Some(newest);
                self.reach(revision);
                State::Opening { attempt: 0 }
            }
            Err(error) => {
                tracing::warn!(%error, attempt, "listing failed");
                for cache in &self.types {
                    cache.note_failure(&error);
                }
                State::Listing {
                    attempt: attempt.saturating_add(1),
                }
            }
        }
    }

    /// Lists all types as far back as the store's history reaches, but not before what has been
    /// published. Returns the revision of the list, and the newest one.
    async fn list_as_of_some_time_ago(
        &self,
        types: &mut [WatchCache],
    ) -> Result<(u64, u64), StorageError> {
        let newest = self.feed.source.current_revision().await?;
        for back in WARM_START_REVISIONS {
            let revision = newest
                .saturating_sub(back)
                .max(self.publisher.current())
                .max(1);
            match self.list_types(types, revision).await {
                Err(StorageError::Expired) if back > 0 => {}
                listed => return listed.map(|revision| (revision, newest)),
            }
        }
        Err(StorageError::Expired)
    }

    /// Says that all types have come to a revision, and begins to serve once that is recent.
    fn reach(&mut self, revision: u64) {
        self.publisher.publish(revision);
        if self.serve_from.is_some_and(|newest| revision >= newest) {
            self.serve_from = None;
            self.types.iter().for_each(WatchCache::serve);
        }
    }

    /// Opens the stream after the last revision.
    async fn open(&mut self, attempt: u32) -> State {
        self.back_off(attempt).await;
        match self.feed.source.follow(self.publisher.current()).await {
            Ok(stream) => State::Following { stream, attempt },
            Err(error) => self.broken(&error, attempt),
        }
    }

    /// Applies what comes until the stream ends.
    async fn follow(&mut self, mut stream: ChangeStream, mut attempt: u32) -> State {
        let feed = Arc::clone(&self.feed);
        let mut expiry = feed.clock.now() + EXPIRY_PERIOD;
        let mut ask = feed.clock.now();
        loop {
            let retry = self.retry.map(|(at, _)| at);
            tokio::select! {
                item = stream.next() => match item {
                    Some(Ok(batch)) => {
                        self.apply(batch);
                        attempt = 0;
                    }
                    Some(Err(error)) => return self.broken(&error, attempt),
                    None => return State::Opening { attempt: attempt.saturating_add(1) },
                },
                () = feed.newcomer(), if retry.is_none() => self.admit().await,
                () = feed.clock.sleep_until(retry.unwrap_or(expiry)), if retry.is_some() => {
                    self.admit().await;
                }
                () = feed.clock.sleep_until(ask), if self.serve_from.is_some() => {
                    // Without a change of ours the stream alone would not say how far it is.
                    if let Err(error) = feed.source.request_progress().await {
                        tracing::info!(%error, "progress cannot be asked for");
                    }
                    ask = feed.clock.now() + CATCH_UP_PERIOD;
                }
                () = feed.clock.sleep_until(expiry) => {
                    self.types.iter_mut().for_each(WatchCache::expire_events);
                    expiry = feed.clock.now() + EXPIRY_PERIOD;
                }
            }
        }
    }

    /// What to do about a stream that cannot go on.
    fn broken(&mut self, error: &StorageError, attempt: u32) -> State {
        if matches!(error, StorageError::WatchExpired) {
            tracing::warn!(%error, "the history is gone, all types are listed again");
            for cache in &self.types {
                cache.invalidate(error);
            }
            return State::Listing { attempt: 0 };
        }
        tracing::warn!(%error, attempt, "the stream of changes broke");
        State::Opening {
            attempt: attempt.saturating_add(1),
        }
    }

    /// Lists the types that have been added meanwhile. The stream waits.
    async fn admit(&mut self) {
        let attempt = self.retry.take().map_or(0, |(_, attempt)| attempt);
        let mut newcomers = self.feed.take_newcomers();
        if newcomers.is_empty() {
            return;
        }
        match self.list_types(&mut newcomers, 0).await {
            Ok(_) => {
                newcomers.iter().for_each(WatchCache::serve);
                self.adopt(newcomers);
            }
            Err(error) => {
                tracing::warn!(%error, "listing an added type failed");
                for cache in &newcomers {
                    cache.note_failure(&error);
                }
                let attempt = attempt.saturating_add(1);
                self.retry = Some((self.feed.clock.now() + backoff(attempt), attempt));
                self.feed.return_newcomers(newcomers);
            }
        }
    }

    fn adopt(&mut self, newcomers: Vec<WatchCache>) {
        for cache in newcomers {
            let index = self.types.len();
            self.by_prefix.insert(cache.prefix().into(), index);
            self.types.push(cache);
        }
    }

    /// Lists types at one revision, the store's newest if it is 0, and returns it.
    async fn list_types(
        &self,
        types: &mut [WatchCache],
        mut revision: u64,
    ) -> Result<u64, StorageError> {
        if types.is_empty() {
            return self.feed.source.current_revision().await;
        }
        let mut fillings = Vec::with_capacity(types.len());
        for cache in types.iter() {
            let (filling, listed_at) = self.list_type(cache, revision).await?;
            revision = listed_at;
            fillings.push(filling);
        }
        // All or none: a type that was served before the others are listed would miss changes.
        for (cache, filling) in types.iter_mut().zip(fillings) {
            cache.replace(revision, filling);
        }
        Ok(revision)
    }

    /// Lists a type at a revision; 0 picks the newest.
    async fn list_type(
        &self,
        cache: &WatchCache,
        mut revision: u64,
    ) -> Result<(Filling, u64), StorageError> {
        let mut filling = Filling::default();
        let mut after: Option<String> = None;
        loop {
            let source = &self.feed.source;
            let page = source
                .page(
                    cache.prefix(),
                    after.as_deref(),
                    revision,
                    LIST_PAGE_OBJECTS,
                )
                .await?;
            if page.revision < self.publisher.current() {
                return Err(StorageError::Internal {
                    message: "the store listed an older revision than it has told of".to_owned(),
                });
            }
            if revision == 0 {
                revision = page.revision;
            }
            after = page.items.last().map(|raw| raw.key.clone()).or(after);
            cache.fill(&mut filling, page.items);
            if !page.more {
                return Ok((filling, revision));
            }
        }
    }

    /// Hands each change to its type, then says that all of them have come this far.
    fn apply(&mut self, batch: ChangeBatch) {
        let mut touched: BTreeMap<usize, Vec<Change>> = BTreeMap::new();
        for change in batch.changes {
            if let Some(index) = self.route(&change.key) {
                touched.entry(index).or_default().push(change);
            }
        }
        for (index, changes) in touched {
            self.types[index].apply(changes, batch.revision);
        }
        self.reach(batch.revision);
    }

    /// The type that a key belongs to: that of the longest prefix.
    fn route(&self, key: &str) -> Option<usize> {
        let prefix = |folder| self.by_prefix.get(folder).copied();
        folders(key).rev().find_map(prefix)
    }

    async fn back_off(&self, attempt: u32) {
        if attempt > 0 {
            self.feed.clock.sleep(backoff(attempt)).await;
        }
    }
}

impl Drop for Reflector {
    /// Nobody would tell the watches any more.
    fn drop(&mut self) {
        let newcomers = self.feed.take_newcomers();
        for cache in self.types.iter().chain(&newcomers) {
            cache.stop();
        }
    }
}

/// How long to wait before an attempt: doubling, bounded, and not in step with other servers.
fn backoff(attempt: u32) -> Duration {
    let (least, most) = BACKOFF;
    let doubled = least.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    doubled.min(most).mul_f64(rand::random_range(0.5..1.0))
}
