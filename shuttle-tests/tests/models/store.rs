//! A store of pods that remembers everything, so that it can say what must be seen of it.

use std::collections::BTreeMap;
use std::fmt;
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::Value;
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::meta::{Object, ResourceVersion};
use shuttle_tests::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, DeleteOptions,
    DeletionCheck, GetOptions, Interface, List, ListOptions, RawObject, SelectionPredicate, Stats,
    StorageError, TryUpdate, UpdateOptions, Versioner, WatchStream,
};
use shuttle_tests::sync::{Arc, Mutex, MutexGuard};

/// How many revisions a batch of changes holds at most.
const BATCH_REVISIONS_MAX: u64 = 3;

/// How many objects a page holds at most, or which part of what is left if that is more.
const PAGE_OBJECTS_MAX: usize = 2;
const PAGE_PART_MIN: usize = 4;

/// The most times that a response yields to other tasks.
const ANSWER_YIELDS_MAX: usize = 8;

/// The probability that a change comes to a follower later than other responses.
const LATE: f64 = 0.3;

/// A pod's label, or none when there is no pod.
pub(crate) type Label = Option<&'static str>;

/// The store: a source of changes for the cache, and what the cache falls back to.
pub(crate) struct Store {
    shared: Arc<Mutex<Inner>>,
    versioner: Versioner,
}

struct Inner {
    /// Every change, in order.
    log: Vec<Entry>,
    revision: u64,
    /// The revision before which following and listing fail.
    compacted: u64,
    /// The last revision that there will be, once known.
    last: Option<u64>,
    /// False if its progress notices may overtake changes.
    trusted: bool,
    followers: BTreeMap<u64, Follower>,
    next_follower: u64,
    /// How many lists the store has answered itself.
    lists: usize,
}

/// A change, and what was there before.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) revision: u64,
    pub(crate) key: String,
    pub(crate) before: Label,
    pub(crate) after: Label,
    /// False if it is never sent to the followers.
    is_sent: bool,
}

struct Follower {
    /// The number of changes that have been handed over.
    position: u64,
    broken: bool,
    /// True if progress has been requested since the last batch.
    progress_requested: bool,
    waker: Option<Waker>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            log: Vec::new(),
            revision: 1,
            compacted: 0,
            last: None,
            trusted: true,
            followers: BTreeMap::new(),
            next_follower: 0,
            lists: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(inner)),
            versioner: Versioner::default(),
        }
    }

    /// Creates a store whose progress notices may overtake changes.
    pub(crate) fn untrusted() -> Self {
        let store = Self::new();
        store.lock().trusted = false;
        store
    }

    /// Writes or deletes keys in one revision, and returns that.
    pub(crate) fn write(&self, changes: &[(&str, Label)]) -> u64 {
        self.lock().write(changes)
    }

    /// Writes for the last time.
    pub(crate) fn write_last(&self, changes: &[(&str, Label)]) -> u64 {
        let mut inner = self.lock();
        let revision = inner.write(changes);
        inner.last = Some(revision);
        revision
    }

    /// Writes, and forgets all history at once: a follower that is behind has a gap.
    pub(crate) fn write_and_compact(&self, changes: &[(&str, Label)]) {
        let mut inner = self.lock();
        inner.compacted = inner.write(changes);
        inner.wake();
    }

    /// Writes an object without sending the change to any follower.
    pub(crate) fn write_unsent(&self, changes: &[(&str, Label)]) {
        let mut inner = self.lock();
        let revision = inner.write(changes);
        let lost = inner.log.iter_mut().filter(|it| it.revision == revision);
        lost.for_each(|it| it.is_sent = false);
    }

    /// Breaks all streams.
    pub(crate) fn break_streams(&self) {
        self.lock().break_streams();
    }

    /// Rolls the store back to its state at a revision. The streams break.
    pub(crate) fn roll_back(&self, revision: u64) {
        let mut inner = self.lock();
        inner.log.retain(|it| it.revision <= revision);
        inner.revision = revision;
        inner.break_streams();
    }

    /// Returns the newest revision: every write that has returned is at or before it.
    pub(crate) fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Returns the last revision that there will be, once known.
    pub(crate) fn last(&self) -> Option<u64> {
        self.lock().last
    }

    /// Returns how many lists the store has answered itself.
    pub(crate) fn lists(&self) -> usize {
        self.lock().lists
    }

    /// Returns the selected objects at a revision: the revision of each key.
    pub(crate) fn selected(
        &self,
        revision: u64,
        selects: impl Fn(&str, Label) -> bool,
    ) -> BTreeMap<String, u64> {
        let content = self.lock().content(revision);
        let selected = content.into_iter();
        let selected = selected.filter(|(key, (_, label))| selects(key, Some(label)));
        selected.map(|(key, (at, _))| (key, at)).collect()
    }

    /// Returns the first change from `from` on that concerns a selection, and its place.
    pub(crate) fn next(
        &self,
        from: usize,
        selects: impl Fn(&str, Label) -> bool,
    ) -> Option<(usize, Entry)> {
        let inner = self.lock();
        let mut later = inner.log.iter().enumerate().skip(from);
        later
            .find(|(_, it)| selects(&it.key, it.before) || selects(&it.key, it.after))
            .map(|(place, entry)| (place, entry.clone()))
    }

    /// Returns the place of the first change after a revision.
    pub(crate) fn place_after(&self, revision: u64) -> usize {
        let inner = self.lock();
        inner.log.partition_point(|it| it.revision <= revision)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock().expect("no model panics under the lock")
    }
}

impl Inner {
    fn write(&mut self, changes: &[(&str, Label)]) -> u64 {
        let before = self.content(self.revision);
        let revision = self.revision + 1;
        let before = |key: &str| before.get(key).map(|(_, label)| *label);
        let entries = changes.iter().map(|(key, after)| Entry {
            revision,
            key: (*key).to_owned(),
            before: before(key),
            after: *after,
            is_sent: true,
        });
        let entries: Vec<_> = entries
            .filter(|it| it.before.is_some() || it.after.is_some())
            .collect();
        self.revision = revision;
        self.log.extend(entries);
        self.wake();
        revision
    }

    fn content(&self, revision: u64) -> BTreeMap<String, (u64, &'static str)> {
        let mut content = BTreeMap::new();
        for entry in self.log.iter().filter(|it| it.revision <= revision) {
            match entry.after {
                Some(label) => content.insert(entry.key.clone(), (entry.revision, label)),
                None => content.remove(&entry.key),
            };
        }
        content
    }

    fn break_streams(&mut self) {
        for follower in self.followers.values_mut() {
            follower.broken = true;
        }
        self.wake();
    }

    fn wake(&mut self) {
        for follower in self.followers.values_mut() {
            if let Some(waker) = follower.waker.take() {
                waker.wake();
            }
        }
    }

    /// Polls the next batch of a follower.
    fn poll(&mut self, id: u64, waker: &Waker) -> Poll<Option<Result<ChangeBatch, StorageError>>> {
        let (revision, compacted) = (self.revision, self.compacted);
        let Some(follower) = self.followers.get_mut(&id) else {
            return Poll::Ready(None);
        };
        let failed = if follower.broken {
            Some(unreachable())
        } else if follower.position < compacted {
            Some(StorageError::WatchExpired)
        } else {
            None
        };
        if let Some(error) = failed {
            self.followers.remove(&id);
            return Poll::Ready(Some(Err(error)));
        }
        if thread_rng().gen_bool(LATE) {
            // On its way: other answers may overtake it.
            waker.wake_by_ref();
            return Poll::Pending;
        }
        // A revision without a change comes with a later one, or as the progress that was requested.
        let mut changes = self.log.iter().filter(|it| it.is_sent);
        if let Some(next) = changes.find(|it| it.revision > follower.position) {
            let to = next.revision + thread_rng().gen_range(0..BATCH_REVISIONS_MAX);
            follower.position = to.min(revision);
            let sent = next.revision..=follower.position;
            let changes = self.log.iter().filter(|it| it.is_sent);
            let changes = changes.filter(|it| sent.contains(&it.revision));
            return Poll::Ready(Some(Ok(ChangeBatch {
                changes: changes.map(Entry::change).collect(),
                revision: *sent.end(),
            })));
        }
        if std::mem::take(&mut follower.progress_requested) {
            follower.position = revision;
            return Poll::Ready(Some(Ok(ChangeBatch {
                changes: Vec::new(),
                revision,
            })));
        }
        follower.waker = Some(waker.clone());
        Poll::Pending
    }

    fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let revision = if revision == 0 {
            self.revision
        } else {
            revision
        };
        if revision < self.compacted {
            return Err(StorageError::ListExpired);
        }
        let mut items = self.list(prefix, revision);
        items.retain(|it| after.is_none_or(|after| &*it.key > after));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = limit.min(PAGE_OBJECTS_MAX.max(items.len() / PAGE_PART_MIN));
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(ChangePage {
            revision,
            items,
            more,
        })
    }

    fn list(&self, prefix: &str, revision: u64) -> Vec<RawObject> {
        let content = self.content(revision).into_iter();
        let under = content.filter(|(key, _)| key.starts_with(prefix));
        let raw = under.map(|(key, (revision, label))| RawObject {
            value: pod(&key, label).into(),
            key,
            revision,
        });
        raw.collect()
    }
}

impl Entry {
    fn change(&self) -> Change {
        let kind = match self.after {
            None => ChangeKind::Delete,
            Some(label) => ChangeKind::Put {
                value: pod(&self.key, label).into(),
                created: self.before.is_none(),
            },
        };
        Change {
            key: self.key.clone(),
            revision: self.revision,
            kind,
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

#[async_trait]
impl ChangeSource for Store {
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let page = self.lock().page(prefix, after, revision, limit);
        // It is on its way while the changes after it come.
        for _ in 0..thread_rng().gen_range(0..ANSWER_YIELDS_MAX) {
            yield_now().await;
        }
        page
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let mut inner = self.lock();
        let id = inner.next_follower;
        inner.next_follower += 1;
        let follower = Follower {
            position: revision,
            broken: false,
            progress_requested: false,
            waker: None,
        };
        inner.followers.insert(id, follower);
        let shared = Arc::clone(&self.shared);
        let poll = move |context: &mut std::task::Context<'_>| {
            let mut inner = shared.lock().expect("no model panics under the lock");
            inner.poll(id, context.waker())
        };
        Ok(futures::stream::poll_fn(poll).boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        let mut inner = self.lock();
        for follower in inner.followers.values_mut() {
            follower.progress_requested = true;
        }
        inner.wake();
        Ok(())
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        Ok(self.lock().compacted.max(1))
    }

    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError> {
        let inner = self.lock();
        let written = |it: &Entry| it.revision == revision && it.key == key;
        Ok(revision < inner.compacted || inner.log.iter().any(written))
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        let revision = self.revision();
        if thread_rng().gen_bool(0.5) {
            yield_now().await;
        }
        Ok(revision)
    }

    fn progress_is_trusted(&self) -> bool {
        self.lock().trusted
    }
}

#[async_trait]
impl Interface for Store {
    fn versioner(&self) -> &Versioner {
        &self.versioner
    }

    async fn create(
        &self,
        _key: &str,
        _object: &Value,
        _ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        Err(unreachable())
    }

    async fn delete(
        &self,
        _key: &str,
        _options: DeleteOptions,
        _check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        Err(unreachable())
    }

    async fn watch(&self, _key: &str, _options: ListOptions) -> Result<WatchStream, StorageError> {
        Err(unreachable())
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let mut inner = self.lock();
        inner.lists += 1;
        let requested = options.resource_version.map_or(0, |version| version.0);
        if requested > inner.revision {
            return Err(StorageError::TooLargeResourceVersion {
                requested,
                current: inner.revision,
                retry_after_seconds: 1,
            });
        }
        let found = inner.list(key, inner.revision).into_iter();
        let mut found = found.filter(|it| it.key == key);
        let raw = found.next().ok_or_else(|| StorageError::KeyNotFound {
            key: key.to_owned(),
            revision: inner.revision,
        })?;
        Ok(self.decode(&raw))
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let mut inner = self.lock();
        inner.lists += 1;
        let exact = options.resource_version.map_or(0, |version| version.0);
        let revision = if exact == 0 { inner.revision } else { exact };
        if revision < inner.compacted {
            return Err(StorageError::ListExpired);
        }
        let raw = inner.list(key, revision);
        let objects = raw.iter().map(|raw| self.decode(raw));
        let predicate: &SelectionPredicate = &options.predicate;
        Ok(List {
            revision,
            items: objects
                .filter(|it| predicate.matches(it.attributes()))
                .collect(),
            ..List::default()
        })
    }

    async fn guaranteed_update(
        &self,
        _key: &str,
        _options: UpdateOptions,
        _update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        Err(unreachable())
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        Ok(Stats::default())
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Ok(ResourceVersion(self.revision()))
    }

    fn compact_revision(&self) -> u64 {
        0
    }
}

impl Store {
    fn decode(&self, raw: &RawObject) -> Arc<Object> {
        let object = self.versioner.update_object(&raw.value, raw.revision);
        Arc::new(object.expect("a pod"))
    }
}

/// Returns a pod at `/<resource>/<namespace>/<name>`.
fn pod(key: &str, app: &str) -> String {
    let mut parts = key.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let namespace = parts.next().unwrap_or_default();
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","labels":{{"app":"{app}"}}}}}}"#
    )
}

fn unreachable() -> StorageError {
    StorageError::Unreachable {
        message: "as the model wants it".to_owned(),
    }
}
