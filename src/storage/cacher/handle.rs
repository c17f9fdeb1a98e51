//! The handle of a type's cache: gets, lists and watches from memory.

use std::sync::Arc;
use std::time::Duration;

use super::answer::{CacheAnswer, needs_store};
use super::decide::{self, Fresh, ListPlan, WatchPlan};
use super::dispatch::attachment::Attachment;
use super::dispatch::bookmark::Bookmarks;
use super::dispatch::filter::Filter;
use super::dispatch::watch_cache::WatchCache;
use super::dispatch::watcher::{CacheWatcher, StateInterval, WatchStart};
use super::fill::feed_shared::{FeedShared, TypeId};
use super::list_snapshot::{list_folder, list_key};
use super::readiness::Readiness;
use super::window::snapshot::{Entry, SnapshotMap};
use super::window::view::CacheView;
use crate::meta::Object;
use crate::storage::{
    CORRUPT_KEYS_MAX, List, ListOptions, SelectionPredicate, StorageError, WatchStream,
};
use crate::sync::ArcSwap;

/// Maximum time that a read waits for a revision to which the feed may not come soon. A change that is on its way comes
/// in that time; that there is none would show much later, and the store can answer.
const UNREACHED_WAIT_MAX: Duration = Duration::from_millis(100);

/// The handle of one type's cache, which a [`super::Reflector`] fills.
///
/// ```
/// use std::sync::Arc;
///
/// use ringwatch::budget::Ledger;
/// use ringwatch::clock::Clock;
/// use ringwatch::storage::backend::embedded::Embedded;
/// use ringwatch::storage::cacher::{CacheMetrics, Feed, Readiness, TypeConfig};
/// use ringwatch::storage::etcd3;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Clock::real();
/// let backend = Arc::new(Embedded::in_memory(clock.clone()));
/// let changes = Arc::new(etcd3::Changes::new(backend, "/registry"));
/// let (feed, reflector) =
///     Feed::new(changes, clock, CacheMetrics::default(), Ledger::unlimited());
/// let pods = feed.add_type(TypeConfig::new("", "pods"));
///
/// // Nothing is served before the reflector has listed the type.
/// assert!(pods.check_ready().is_err());
/// let reflecting = tokio::spawn(reflector.run(std::future::pending()));
/// pods.ready().await?;
/// assert_eq!(pods.readiness(), Readiness::Ready { generation: 1 });
/// assert!(pods.cached("/pods/default/a").is_none());
/// # reflecting.abort();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Cacher {
    /// The type's number in the feed.
    id: TypeId,
    /// The cache in the current history of the store. A request takes it once, and with it the
    /// [`super::freshness::feed_revision::Freshness`] that its revisions belong to.
    present: Arc<ArcSwap<WatchCache>>,
    /// The feed that fills the cache.
    feed: Arc<FeedShared>,
}

impl Cacher {
    /// Creates a handle on a type's cache.
    pub(super) fn new(
        id: TypeId,
        present: Arc<ArcSwap<WatchCache>>,
        feed: Arc<FeedShared>,
    ) -> Self {
        Self { id, present, feed }
    }

    /// Returns the type's number in the feed.
    pub(super) fn id(&self) -> TypeId {
        self.id
    }

    /// Returns the cache of the present history of the store.
    fn cache(&self) -> Arc<WatchCache> {
        self.present.load_full()
    }

    /// Returns the readiness of the type.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.present.load().readiness()
    }

    /// Waits until the type is ready.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] when the feed has ended.
    pub async fn ready(&self) -> Result<(), StorageError> {
        loop {
            let cache = self.cache();
            let mut readiness = cache.follow_readiness();
            // The sender lives as long as the cache, so waiting cannot fail. The state that was waited for counts: the
            // type may be listed again by the time it is checked once more.
            let reached = readiness
                .wait_for(|it| !matches!(it, Readiness::Pending { .. }))
                .await
                .map_or_else(|_| cache.check_ready(), |it| it.check(cache.clock.now()));
            // A history ends only after the next one has begun, in which a type that was removed has no cache.
            if !cache.fresh.is_over() || Arc::ptr_eq(&cache, &self.cache()) {
                return reached;
            }
        }
    }

    /// Checks that the type is ready now.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] with the reason and a retry delay.
    pub fn check_ready(&self) -> Result<(), StorageError> {
        self.present.load().check_ready()
    }

    /// Returns true if the type is ready, or was at some time.
    #[must_use]
    pub fn has_been_ready(&self) -> bool {
        self.present.load().has_been_ready()
    }

    /// Returns a message for operators: the type that is not ready, and its state; `None` if it is ready.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let cache = self.present.load();
        let complaint = cache.readiness().complaint(cache.clock.now())?;
        let config = &cache.config;
        let dot = if config.group.is_empty() { "" } else { "." };
        Some(format!(
            "{}{dot}{}: {complaint}",
            config.resource, config.group
        ))
    }

    /// Ends all watches for good: each delivers the events that were sent to it, then a last bookmark if it wants
    /// bookmarks, then ends. New watches are refused.
    pub fn drain(&self) {
        self.present.load().drain();
    }

    /// Returns the newest cached object under a key; the store may have a newer one.
    #[must_use]
    pub fn cached(&self, key: &str) -> Option<Arc<Object>> {
        let cache = self.present.load();
        // Not of a history that the store has left: a transaction would take its revisions for those of the new one.
        cache.check_ready().ok()?;
        match cache.view().state().get(key) {
            Some(Entry::Readable(object)) => Some(Arc::clone(object)),
            Some(Entry::Unreadable { .. }) | None => None,
        }
    }

    /// Reads one object, or says that the store has to.
    ///
    /// # Errors
    /// [`StorageError::KeyNotFound`]; [`StorageError::TooLargeResourceVersion`].
    pub(super) async fn answer_get(
        &self,
        key: &str,
        fresh: Fresh,
    ) -> Result<CacheAnswer<Arc<Object>>, StorageError> {
        if fresh == Fresh::MostRecent && !self.feed.progress_is_trusted() {
            return Ok(CacheAnswer::AskStore(untrusted()));
        }
        let cache = self.cache();
        match self.wait(&cache, fresh).await {
            Err(error) if self.is_for_store(&error) => return Ok(CacheAnswer::AskStore(error)),
            waited => waited?,
        }
        let (view, revision) = match cache.served() {
            Ok(served) => served,
            Err(error) => return Ok(CacheAnswer::AskStore(error)),
        };
        match view.state().get(key) {
            Some(Entry::Readable(object)) => Ok(CacheAnswer::Here(Arc::clone(object))),
            Some(Entry::Unreadable { .. }) => Ok(CacheAnswer::AskStore(unreadable([key]))),
            None => Err(StorageError::KeyNotFound {
                key: key.to_owned(),
                revision,
            }),
        }
    }

    /// Answers a list, or says that the store has to.
    ///
    /// # Errors
    /// [`StorageError::NotReady`], also when the cache lags and as many readers as may already read from the store;
    /// [`StorageError::TooLargeResourceVersion`], except for a list of the newest state and for one that is continued.
    pub(super) async fn answer_list(
        &self,
        key: &str,
        recursive: bool,
        predicate: &SelectionPredicate,
        plan: &ListPlan,
    ) -> Result<CacheAnswer<List>, StorageError> {
        let cache = self.cache();
        if plan.fresh == Fresh::MostRecent {
            if !self.feed.progress_is_trusted() {
                cache.metrics.count_consistent_read(false, true);
                return Ok(CacheAnswer::AskStore(untrusted()));
            }
            let waited = self.wait(&cache, plan.fresh).await;
            let fresh = waited.is_ok();
            cache.metrics.count_consistent_read(fresh, !fresh);
            if let Err(error) = waited {
                return Ok(CacheAnswer::Lagging(
                    self.feed.permit_lagging_list()?,
                    error,
                ));
            }
        } else if let Err(error) = self.wait(&cache, plan.fresh).await {
            if self.is_for_store(&error) {
                return Ok(CacheAnswer::AskStore(error));
            }
            // The pages before may be the store's, which was ahead of the cache.
            let lags = matches!(error, StorageError::TooLargeResourceVersion { .. });
            if !lags || plan.start.is_none() {
                return Err(error);
            }
            return Ok(CacheAnswer::Lagging(
                self.feed.permit_lagging_list()?,
                error,
            ));
        }
        let (view, newest) = cache.served()?;
        let state = match plan.exact {
            Some(revision) => view.state_at(revision),
            None => Some(view.state().as_ref().clone()),
        };
        let Some(state) = state else {
            return Ok(CacheAnswer::AskStore(StorageError::ListExpired));
        };
        if state.has_unreadable() {
            let why = "a value of the type cannot be decrypted or decoded";
            return Ok(CacheAnswer::AskStore(needs_store(why)));
        }
        drop(view);
        let revision = plan.exact.unwrap_or(newest);
        let listed = if recursive {
            list_folder(&state, revision, key, plan, predicate)?
        } else {
            list_key(&state, revision, key, predicate)
        };
        let returned = listed.list.items.len();
        cache.metrics.count_list(
            listed.indexed_field.as_deref(),
            listed.objects_read,
            returned,
        );
        Ok(CacheAnswer::Here(listed.list))
    }

    /// Returns true if the initial state of a watch is to be the store's: the watch demands a state so new that the
    /// cache would not know that it has it.
    pub(super) async fn needs_state_of_store(&self, options: &ListOptions) -> bool {
        if self.feed.reaches_newest() {
            return false;
        }
        match decide::watch(options) {
            WatchPlan::State(Fresh::MostRecent) => true,
            WatchPlan::State(fresh @ Fresh::NotOlderThan(_)) => {
                let waited = self.wait(&self.cache(), fresh).await;
                waited.is_err_and(|error| self.is_for_store(&error))
            }
            _ => false,
        }
    }

    /// Returns true if a read that failed to wait for a revision is the store's. Where the feed reaches the newest
    /// revision, the cache would have reached it if the store had.
    fn is_for_store(&self, error: &StorageError) -> bool {
        !self.feed.reaches_newest() && matches!(error, StorageError::TooLargeResourceVersion { .. })
    }

    /// Starts a watch. Any error but that the cache is not ready is the only item of the stream.
    ///
    /// # Errors
    /// [`StorageError::NotReady`].
    pub(super) async fn start_watch(
        &self,
        key: &str,
        options: ListOptions,
    ) -> Result<WatchStream, StorageError> {
        let cache = self.cache();
        cache.check_ready()?;
        let plan = decide::watch(&options);
        let newest = match self.await_watch(&cache, plan).await {
            Ok(newest) => newest,
            Err(error) => return Ok(only(error)),
        };
        let bookmarks = options
            .predicate
            .allow_watch_bookmarks
            .then_some(Bookmarks {
                deadline: options.deadline,
            });
        let filter = Filter::new(key, options.recursive, options.predicate);
        let Some(attachment) = Attachment::new(&cache, filter, bookmarks) else {
            return Err(StorageError::NotReady {
                reason: Some("the server is shutting down".to_owned()),
                retry_after_seconds: 1,
            });
        };
        // An event that was published before the attachment is found in the window, a later one is sent through the
        // channel.
        let Ok((view, revision)) = cache.served() else {
            // The cache began to be filled again before the watcher was attached, so nobody will end it, or this has
            // just been done. The client retries at once and receives the error then.
            if cache.fresh.is_over() {
                return Ok(only(StorageError::WatchExpired));
            }
            return Ok(WatchStream::new(futures::stream::empty()));
        };
        if matches!(plan, WatchPlan::State(_)) {
            let readable = check_readable(&view.state(), attachment.filter.scope());
            if let Err(error) = readable {
                return Ok(only(error));
            }
        }
        let end_bookmark = bookmarks.is_some() && options.send_initial_events == Some(true);
        match start(&view, revision, plan, newest, end_bookmark) {
            Ok(start) => {
                let watcher = CacheWatcher::new(attachment, start)
                    .with_previous(options.with_previous)
                    .observed_by(options.observer);
                Ok(WatchStream::followable(watcher))
            }
            Err(error) => Ok(only(error)),
        }
    }

    /// Waits for the freshness that a watch demands before it begins, and returns the store's revision if the watch
    /// begins there.
    async fn await_watch(&self, cache: &WatchCache, plan: WatchPlan) -> Result<u64, StorageError> {
        let fresh = &cache.fresh;
        match plan {
            WatchPlan::State(fresh) => self.wait(cache, fresh).await.map(|()| 0),
            WatchPlan::AfterNewest => self.feed.newest_revision(fresh, fresh.deadline()).await,
            // Otherwise it would wait until the store reached that revision again, and miss the changes until then.
            WatchPlan::After(revision) if fresh.is_former(revision) => {
                Err(StorageError::WatchExpired)
            }
            WatchPlan::After(_) | WatchPlan::Now => Ok(0),
        }
    }

    /// Waits until a cache is as fresh as a read demands.
    async fn wait(&self, cache: &WatchCache, fresh: Fresh) -> Result<(), StorageError> {
        let deadline = match self.feed.reaches_newest() {
            true => cache.fresh.deadline(),
            false => cache.clock.now() + UNREACHED_WAIT_MAX,
        };
        let revision = match fresh {
            Fresh::Any => return Ok(()),
            Fresh::NotOlderThan(revision) => revision,
            Fresh::MostRecent => self.feed.newest_revision(&cache.fresh, deadline).await?,
        };
        let (_, reached) = cache.current();
        if reached >= revision {
            // kube-apiserver counts reads that need not wait too (`waitUntilFreshAndBlock` of `watch_cache.go`, 1.36).
            cache.metrics.read_wait.observe(0.0);
            return Ok(());
        }
        let begun = cache.clock.now();
        let _waiting = cache.waiting.begin(begun);
        let waited = cache.fresh.wait(revision, deadline).await;
        let seconds = (cache.clock.now() - begun).as_secs_f64();
        cache.metrics.read_wait.observe(seconds);
        waited
    }

    /// Returns the numbers of objects and of events.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let cache = self.cache();
        let view = cache.view();
        (view.state().under("/", "").count(), view.events(0).count())
    }

    /// Returns how many entries the schedule of bookmarks has.
    #[cfg(test)]
    pub(super) fn scheduled(&self) -> usize {
        self.present.load().watchers().scheduled()
    }

    /// Returns how many watches there are.
    #[cfg(test)]
    pub(super) fn watch_count(&self) -> usize {
        self.present.load().watchers().len()
    }
}

/// Checks that every object of the initial state of a watch can be decoded: the client would take a missing one for
/// deleted.
///
/// # Errors
/// [`StorageError::Corrupt`].
fn check_readable(state: &SnapshotMap, scope: &str) -> Result<(), StorageError> {
    if !state.has_unreadable() {
        return Ok(());
    }
    let mut keys = state.unreadable_in(scope).peekable();
    if keys.peek().is_none() {
        return Ok(());
    }
    Err(unreadable(keys))
}

/// Returns the error about values that cannot be decoded.
fn unreadable(keys: impl IntoIterator<Item = impl ToString>) -> StorageError {
    let why = "the stored value cannot be decrypted or decoded";
    let keys = keys.into_iter().take(CORRUPT_KEYS_MAX + 1);
    StorageError::Corrupt {
        keys: keys.map(|key| (key.to_string(), why.to_owned())).collect(),
    }
}

/// Returns the error of a read of the newest state where the cache cannot know that it has that.
fn untrusted() -> StorageError {
    needs_store("its progress notices may overtake changes")
}

/// Returns the start of a watch in a view of `revision`. `newest` is the store's revision, for a plan that needs it.
fn start(
    view: &CacheView,
    revision: u64,
    plan: WatchPlan,
    newest: u64,
    end_bookmark: bool,
) -> Result<WatchStart, StorageError> {
    let (after, state) = match plan {
        WatchPlan::State(_) => {
            let state = StateInterval::new(view.state().as_ref().clone(), end_bookmark);
            (revision, Some(state))
        }
        WatchPlan::Now => (revision, None),
        WatchPlan::After(after) => (after, None),
        WatchPlan::AfterNewest => (newest, None),
    };
    let cursor = view.after(after).ok_or_else(|| StorageError::TooOld {
        requested: after,
        oldest: view.base_revision(),
    })?;
    Ok(WatchStart {
        cursor,
        start_revision: after,
        state,
    })
}

/// Returns a watch whose only item is an error.
fn only(error: StorageError) -> WatchStream {
    WatchStream::new(futures::stream::once(std::future::ready(Err(error))))
}
