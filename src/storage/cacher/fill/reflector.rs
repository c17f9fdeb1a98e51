//! The reflector: it fills the caches of all types, then applies their changes.
//!
//! ```text
//!   Beginning --all at one revision--> Opening --stream--> Following
//!      ^  ^ ^                          ^  |                 |   |
//!      |  | +---- history is gone -----+--+-----------------+   |
//!      |  +--- the store was rolled back -+-----------------+   |
//!      +--------- failed, wait            +---- it broke -------+
//! ```
//!
//! The first list is of an older revision, as far back as the store's history reaches, and the changes since then are
//! applied before anything is served. So the windows are full from the first moment, and clients that were watching
//! before a restart resume where they were. Types that could not be listed so, or not in time, are listed like those
//! that are added while the feed runs: page by page, while the stream is followed (see [`super::listing`]).
//!
//! A stream that breaks is resumed after the last revision; nothing is listed again and no watch notices. When the
//! history after that revision is compacted, all types start over and their watches end. The difference between two
//! states does not show what happened in between, and a watch must not skip an event: so the gap is not bridged, and
//! clients list again.
//!
//! When compaction overtakes a list of an older revision, the next attempt begins at the newest revision: the stream
//! first, then the lists while it is followed. That succeeds however slow the lists are.
//!
//! # The store was rolled back
//!
//! A store whose newest revision is below one that it reported was restored from a backup. The same revisions mean
//! something else now. Readers notice it when they request the newest revision, the reflector whenever it lists or
//! opens a stream; there it also checks that the last change it applied is in the store's history, for the store may
//! have passed the old revision meanwhile. Then all watches end with "too old" and everything begins anew, see
//! [`crate::storage::cacher::feed`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, stream};

use super::backoff::{back_off, backoff};
use super::cache_writer::CacheWriter;
use super::decryption_request::ValueAnswer;
use super::feed_shared::{FeedShared, TypeId};
use super::followed_types::{Batch, Fault, FollowedTypes};
use super::listing::{PageAnswer, read_all, read_page};
use super::shrink_windows::{SHRINK_PERIOD, shrink_windows};
use super::value_requests::ValueRequests;
use crate::clock::Instant;
use crate::ring::waiters::{Publisher, published};
use crate::storage::{ChangeBatch, ChangeKind, ChangeStream, StorageError};

/// The most revisions that the first list may be before the newest. A type's window has room for as many events and
/// some more.
const WARM_START_REVISIONS_MAX: u64 = 100_000;

/// Maximum time that the lists of an older revision may take together, in seconds. Types that are not listed by then
/// are listed while the stream is followed.
const WARM_START_SECONDS_MAX: u64 = 15;

/// Maximum number of types that are listed at the same time.
const LISTS_AT_ONCE_MAX: usize = 4;

/// The interval between requests for progress, while the changes since the lists are awaited.
const CATCH_UP_PERIOD: Duration = Duration::from_millis(100);

/// The interval at which events that have become too old are dropped from windows.
const EXPIRY_PERIOD: Duration = Duration::from_secs(15);

/// The writing side of a [`crate::storage::cacher::Feed`]: the only task that changes the caches.
#[derive(Debug)]
pub struct Reflector {
    /// The part that is shared with readers.
    feed: Arc<FeedShared>,
    /// Publishes the revision that all listed types have reached.
    publisher: Publisher,
    /// The types that are followed.
    types: FollowedTypes,
    /// The requests for pages in flight.
    pages: FuturesUnordered<BoxFuture<'static, PageAnswer>>,
    /// The requests for values that types wait for.
    values: ValueRequests,
    /// The ticket of the next page.
    next_ticket: u64,
    /// The revision at which types listed at an older revision become ready; `None` once they are.
    serve_from: Option<u64>,
    /// The key and the revision of the last put that was applied, by which the store's history is recognised.
    last_put: Option<(String, u64)>,
}

/// The state of the reflector. `attempt` counts the failures in a row.
enum ReflectorState {
    /// All types are listed and filled.
    Beginning { attempt: u32, from: Origin },
    /// The stream is opened after the last revision.
    Opening { attempt: u32 },
    /// The changes of the stream are applied as they come.
    Following { stream: ChangeStream, attempt: u32 },
    /// The store was rolled back: everything begins anew.
    RolledBack,
}

/// The revision of the first lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// As far back as history reaches.
    History,
    /// At the newest revision.
    Head,
}

impl Reflector {
    /// Creates a reflector without types.
    pub(crate) fn new(feed: Arc<FeedShared>, publisher: Publisher) -> Self {
        Self {
            feed,
            publisher,
            types: FollowedTypes::default(),
            pages: FuturesUnordered::new(),
            values: ValueRequests::default(),
            next_ticket: 0,
            serve_from: None,
            last_put: None,
        }
    }

    /// Fills the caches and keeps them current until `shutdown` completes. Then all types stop.
    pub async fn run(mut self, shutdown: impl Future<Output = ()> + Send) {
        let feed = Arc::clone(&self.feed);
        tokio::select! {
            () = shutdown => {}
            () = self.reflect() => {}
            () = feed.serve_probes() => {}
            () = feed.request_progress() => {}
            () = feed.send_bookmarks() => {}
        }
    }

    /// Runs the state machine. Never completes.
    async fn reflect(&mut self) {
        let mut state = ReflectorState::beginning();
        loop {
            state = match state {
                ReflectorState::Beginning { attempt, from } => self.begin(attempt, from).await,
                ReflectorState::Opening { attempt } => self.open(attempt).await,
                ReflectorState::Following { stream, attempt } => self.follow(stream, attempt).await,
                ReflectorState::RolledBack => self.begin_anew(),
            };
        }
    }

    /// Lists all types at one revision, or leaves that to the time when the stream is followed.
    async fn begin(&mut self, attempt: u32, from: Origin) -> ReflectorState {
        back_off(&self.feed.clock, attempt).await;
        if self.apply_commands() {
            return ReflectorState::RolledBack;
        }
        let failed = match self.first_revision(from).await {
            Ok((_, newest)) if newest < self.publisher.current() => {
                return ReflectorState::RolledBack;
            }
            Ok((first, newest)) => {
                self.serve_from = Some(newest);
                let listed = match from {
                    Origin::History => self.list_all(first).await,
                    Origin::Head => Ok(()),
                };
                listed.map(|()| first)
            }
            Err(error) => Err(error),
        };
        match failed {
            Ok(first) => {
                self.reach(first, Batch::new());
                ReflectorState::Opening { attempt: 0 }
            }
            Err(StorageError::ListExpired) => ReflectorState::at_head(),
            Err(error) => {
                tracing::warn!(%error, attempt, "listing failed");
                for (_, cache) in self.types.iter() {
                    cache.note_failure(&error);
                }
                let attempt = attempt.saturating_add(1);
                ReflectorState::Beginning { attempt, from }
            }
        }
    }

    /// Returns the revision to begin at, which is not before what has been published, and the newest one.
    async fn first_revision(&mut self, from: Origin) -> Result<(u64, u64), StorageError> {
        let source = &self.feed.source;
        let newest = source.current_revision().await?;
        // Without trust in progress notices, nothing would show when the newest revision has been reached.
        if from == Origin::Head || !source.progress_is_trusted() {
            return Ok((newest, newest));
        }
        let oldest = source.oldest_revision().await?;
        let first = newest
            .saturating_sub(WARM_START_REVISIONS_MAX)
            .max(oldest)
            .max(self.publisher.current());
        Ok((first, newest))
    }

    /// Lists the types at a revision.
    ///
    /// # Errors
    /// [`StorageError::ListExpired`] when the revision was compacted meanwhile; any other error of the store if no type
    /// could be listed.
    async fn list_all(&mut self, revision: u64) -> Result<(), StorageError> {
        let list = |(id, cache): (TypeId, &CacheWriter)| {
            let (feed, filling) = (Arc::clone(&self.feed), cache.begin_filling());
            let cache = Arc::clone(cache.shared());
            async move { (id, read_all(&feed, &cache, filling, revision).await) }.boxed()
        };
        let lists: Vec<_> = self.types.iter().map(list).collect();
        let mut lists = stream::iter(lists).buffer_unordered(LISTS_AT_ONCE_MAX);
        let deadline = self.feed.clock.now() + Duration::from_secs(WARM_START_SECONDS_MAX);
        let (mut filled, mut failed) = (Vec::new(), None);
        loop {
            tokio::select! {
                biased;
                list = lists.next() => match list {
                    Some((id, Ok(filling))) => filled.push((id, filling)),
                    Some((_, Err(StorageError::ListExpired))) => return Err(StorageError::ListExpired),
                    Some((_, Err(error))) => failed = Some(error),
                    None => break,
                },
                () = self.feed.clock.sleep_until(deadline) => break,
            }
        }
        match failed {
            Some(error) if filled.is_empty() => Err(error),
            _ => {
                for (id, filling) in filled {
                    self.types.filled(id, revision, filling);
                }
                Ok(())
            }
        }
    }

    /// Publishes the events of types and that all have reached a revision, and begins to serve them once it is recent
    /// enough.
    fn reach(&mut self, revision: u64, batch: Batch) {
        self.types.finish_lists(revision);
        self.types
            .publish(batch, || self.publisher.publish(revision));
        self.feed.metrics.set_feed(revision, self.feed.clock.wall());
        if self.serve_from.is_some_and(|newest| revision >= newest) {
            self.serve_from = None;
        }
        match self.serve_from {
            Some(newest) => self.types.note_progress(revision, newest),
            None => self.types.serve(),
        }
    }

    /// Opens the stream after the last revision.
    async fn open(&mut self, attempt: u32) -> ReflectorState {
        back_off(&self.feed.clock, attempt).await;
        if self.apply_commands() {
            return ReflectorState::RolledBack;
        }
        match self.open_stream().await {
            Ok(Some(stream)) => ReflectorState::Following { stream, attempt },
            Ok(None) => ReflectorState::RolledBack,
            Err(error) => self.broken(&error, attempt),
        }
    }

    /// Returns a stream of the history that has been followed so far; `None` if the store has another one.
    async fn open_stream(&mut self) -> Result<Option<ChangeStream>, StorageError> {
        let stream = self.feed.follow(self.publisher.current()).await?;
        // The check comes after the stream is open, so that it is made of the history that the stream follows.
        Ok(self.is_same_history().await?.then_some(stream))
    }

    /// Returns true if the store is the one that was followed, and not an older state of it.
    async fn is_same_history(&mut self) -> Result<bool, StorageError> {
        let source = &self.feed.source;
        if source.current_revision().await? < self.publisher.current() {
            return Ok(false);
        }
        match &self.last_put {
            Some((key, revision)) => source.has_written(key, *revision).await,
            None => Ok(true),
        }
    }

    /// Applies changes until the stream ends.
    async fn follow(&mut self, mut stream: ChangeStream, mut attempt: u32) -> ReflectorState {
        let feed = Arc::clone(&self.feed);
        let mut expiry = feed.clock.now() + EXPIRY_PERIOD;
        let (mut progress_due, mut shrink_due) = (feed.clock.now(), feed.clock.now());
        loop {
            let page_due = self.request_pages();
            let value_due = self.values.send(&mut self.types, &feed);
            let due = page_due.into_iter().chain(value_due).min();
            let catching_up = self.serve_from.is_some() || self.types.awaits_stream();
            tokio::select! {
                item = stream.next() => match item {
                    Some(Ok(batch)) => {
                        self.apply(batch);
                        attempt = 0;
                    }
                    Some(Err(error)) => return self.broken(&error, attempt),
                    None => return ReflectorState::Opening { attempt: attempt.saturating_add(1) },
                },
                Some(answer) = self.pages.next() => if self.take_page(answer) {
                    return ReflectorState::RolledBack;
                },
                Some(answer) = self.values.next() => self.take_value(answer),
                () = feed.commands_pending() => if self.apply_commands() {
                    return ReflectorState::RolledBack;
                },
                () = feed.clock.sleep_until(due.unwrap_or(expiry)), if due.is_some() => {}
                () = feed.clock.sleep_until(progress_due), if catching_up => {
                    // Without changes the stream alone would not report how far it is.
                    if let Err(error) = feed.source.request_progress().await {
                        tracing::info!(%error, "cannot request progress of the watch");
                    }
                    progress_due = feed.clock.now() + CATCH_UP_PERIOD;
                }
                () = feed.clock.sleep_until(shrink_due), if feed.ledger.owed_by_windows() > 0 => {
                    let now = feed.clock.now();
                    shrink_windows(self.types.caches_mut(), &feed.ledger, now);
                    shrink_due = now + SHRINK_PERIOD;
                }
                () = feed.clock.sleep_until(expiry) => {
                    self.types.caches_mut().for_each(CacheWriter::expire_events);
                    feed.ask_if_the_store_reports().await;
                    expiry = feed.clock.now() + EXPIRY_PERIOD;
                }
            }
        }
    }

    /// Returns the next state after a stream has failed.
    fn broken(&mut self, error: &StorageError, attempt: u32) -> ReflectorState {
        if matches!(error, StorageError::WatchExpired) {
            tracing::warn!(%error, "the history has been compacted; all types are listed again");
            self.types.relist_all(error, self.feed.clock.now());
            self.pages = FuturesUnordered::new();
            self.values.forget();
            // A list of an older revision that compaction has just overtaken would be overtaken again.
            return match self.serve_from.take() {
                Some(_) => ReflectorState::at_head(),
                None => ReflectorState::beginning(),
            };
        }
        tracing::warn!(%error, attempt, "the stream of changes broke");
        ReflectorState::Opening {
            attempt: attempt.saturating_add(1),
        }
    }

    /// Applies the pending commands. Returns true if the store was found rolled back to an older state.
    fn apply_commands(&mut self) -> bool {
        let now = self.feed.clock.now();
        let commands = self.feed.take_commands();
        for (id, cache) in commands.added {
            self.types.add(id, cache, now);
        }
        let mut relisted = commands.relisted;
        if commands.relist_unreadable {
            relisted.extend(self.types.unreadable());
        }
        for id in relisted {
            let reason = StorageError::Internal {
                message: "the type is listed again".to_owned(),
            };
            self.types.relist(id, &reason, now);
        }
        for id in commands.removed {
            self.types.remove(id);
        }
        commands.store_rolled_back == Some(self.feed.fresh().epoch())
    }

    /// Requests the pages that are due, and returns when the next one is.
    fn request_pages(&mut self) -> Option<Instant> {
        while self.pages.len() < LISTS_AT_ONCE_MAX {
            let (due, id) = self.types.next_due()?;
            if due > self.feed.clock.now() {
                return Some(due);
            }
            let reported = self.publisher.current();
            let pin = (!self.feed.progress_is_trusted()).then_some(reported);
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            let (cache, listing) = self.types.listing(id)?;
            let request = listing.request_page(ticket, pin);
            // A page at a given revision is of that one, however far the store has come since.
            let revision_min = match request.revision {
                0 => reported,
                pinned => pinned.min(reported),
            };
            let (feed, cache) = (Arc::clone(&self.feed), Arc::clone(cache.shared()));
            let answer = move |page| PageAnswer {
                id,
                ticket,
                revision_min,
                page,
            };
            let page = async move { answer(read_page(&feed, &cache, request).await) };
            self.pages.push(page.boxed());
        }
        None
    }

    /// Applies a page. Returns true if it shows that the store was rolled back.
    fn take_page(&mut self, answer: PageAnswer) -> bool {
        let now = self.feed.clock.now();
        let Some((cache, listing)) = self.types.listing(answer.id) else {
            return false;
        };
        if !listing.is_in_flight(answer.ticket) {
            return false;
        }
        match answer.page {
            Ok(page) if page.revision < answer.revision_min => return true,
            Ok(page) => listing.take(cache.shared(), page, now),
            Err(error) => {
                tracing::warn!(%error, prefix = cache.prefix(), "listing a type failed");
                cache.note_failure(&error);
                let failures = listing.fail(&error);
                listing.retry_at(now + backoff(failures));
            }
        }
        self.reach(self.publisher.current(), Batch::new());
        false
    }

    /// Applies each change to its type, then publishes the revision of the batch.
    fn apply(&mut self, batch: ChangeBatch) {
        let revision = batch.revision;
        let last_put = batch.changes.iter().rev().find_map(|change| {
            let put = !matches!(change.kind, ChangeKind::Delete);
            put.then(|| (change.key.clone(), change.revision))
        });
        self.last_put = last_put.or_else(|| self.last_put.take());
        let (events, faulty) = self.types.apply(batch);
        let list_again = |(id, fault)| self.list_again(id, fault);
        faulty.into_iter().for_each(list_again);
        self.reach(revision, events);
    }

    /// Lists a type again because of a fault. Its watches end.
    fn list_again(&mut self, id: TypeId, fault: Fault) {
        let error = StorageError::Internal {
            message: fault.to_string(),
        };
        tracing::error!(%error, "a type is listed again");
        let due = self.feed.clock.now() + self.types.pause_after(id, fault);
        self.types.relist(id, &error, due);
    }

    /// Gives a type the value that it waits for, or what came instead.
    fn take_value(&mut self, answer: ValueAnswer) {
        let (reached, now) = (self.publisher.current(), self.feed.clock.now());
        let taken = self.types.take_value(answer, reached, now);
        let events = taken.unwrap_or_else(|(id, fault)| {
            self.list_again(id, fault);
            Batch::new()
        });
        self.reach(reached, events);
    }

    /// Begins anew with what the store holds now; nothing that is known is kept.
    fn begin_anew(&mut self) -> ReflectorState {
        let reported = self.publisher.current();
        tracing::error!(
            reported,
            "the store was restored from an older state; everything is listed again"
        );
        let (publisher, published) = published(0);
        let writers = self.feed.begin_anew(published);
        // No reader finds the old caches any more, so their waiters can be woken.
        for (_, cache) in std::mem::take(&mut self.types).iter() {
            cache.stop();
        }
        self.publisher = publisher;
        self.pages = FuturesUnordered::new();
        self.values.forget();
        self.serve_from = None;
        self.last_put = None;
        for (id, cache) in writers {
            self.types.add(id, cache, self.feed.clock.now());
        }
        ReflectorState::beginning()
    }
}

impl ReflectorState {
    fn beginning() -> Self {
        Self::Beginning {
            attempt: 0,
            from: Origin::History,
        }
    }

    fn at_head() -> Self {
        Self::Beginning {
            attempt: 0,
            from: Origin::Head,
        }
    }
}

impl Drop for Reflector {
    /// Stops all types, since no events will be sent to their watches any more.
    fn drop(&mut self) {
        self.apply_commands();
        for (_, cache) in self.types.iter() {
            cache.stop();
        }
    }
}
