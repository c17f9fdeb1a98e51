//! A source of changes that does what a test says, and a store that only counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::meta::{Object, ResourceVersion};
use crate::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, DeleteOptions,
    DeletionCheck, GetOptions, Interface, List, ListOptions, RawObject, SelectionPredicate, Stats,
    StorageError, TryUpdate, UpdateOptions, Versioner, WatchStream,
};
use crate::sync::{Mutex, MutexGuard};

type Batch = Result<ChangeBatch, StorageError>;

/// The source.
#[derive(Debug, Default)]
pub(super) struct Script {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    /// Every change.
    log: Vec<Change>,
    /// The newest revision.
    pub(super) revision: u64,
    /// Following or listing before this fails.
    compacted: u64,
    /// The keys that exist.
    live: BTreeSet<String>,
    /// The prefix of keys whose pages are never returned.
    pub(super) hung: Option<String>,
    /// The time that a page takes.
    pub(super) page_time: Duration,
    /// The time that it takes to say which revision is the newest.
    pub(super) probe_time: Duration,
    /// The revision to which the store falls back when the next stream is opened, just before.
    pub(super) falls_back: Option<u64>,
    /// The fate of requests for values that were written encrypted.
    pub(super) decryption: Decryption,
    /// Shared by such requests until they are answered or dropped.
    requested: Arc<()>,
    /// The open streams.
    followers: Vec<mpsc::UnboundedSender<Batch>>,
    /// The revision from which on changes are kept back from the streams.
    held: Option<u64>,
    /// True if streams can be opened.
    pub(super) reachable: bool,
    /// True if progress notices of the source can be trusted.
    pub(super) trusted: bool,
    /// True if the source says that followers come to the newest revision soon.
    pub(super) reaches_newest: bool,
    /// True if requests for progress are answered.
    pub(super) answers_progress: bool,
    pub(super) pages: usize,
    pub(super) follows: usize,
    pub(super) probes: usize,
    pub(super) progress_requests: usize,
}

/// The fate of requests for encrypted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decryption {
    Answers,
    /// One is answered, then they hang.
    AnswersOnce,
    Fails,
    Hangs,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            live: BTreeSet::new(),
            hung: None,
            page_time: Duration::ZERO,
            probe_time: Duration::ZERO,
            falls_back: None,
            decryption: Decryption::Answers,
            requested: Arc::default(),
            revision: 1,
            compacted: 0,
            followers: Vec::new(),
            held: None,
            reachable: true,
            trusted: true,
            reaches_newest: true,
            answers_progress: true,
            pages: 0,
            follows: 0,
            probes: 0,
            progress_requests: 0,
        }
    }
}

impl Script {
    pub(super) fn state(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panics under the lock")
    }

    /// Writes an object with an `app` label and returns the revision.
    pub(super) fn put(&self, key: &str, app: &str) -> u64 {
        let value = serde_json::to_vec(&pod(key, app)).expect("json");
        self.put_raw(key, value.into())
    }

    /// Writes bytes that need not be an object.
    pub(super) fn put_raw(&self, key: &str, value: Bytes) -> u64 {
        let created = !self.state().live.contains(key);
        self.change(key, ChangeKind::Put { value, created })
    }

    /// Writes an object with an `app` label whose value has to be decrypted.
    pub(super) fn put_encrypted(&self, key: &str, app: &str) -> u64 {
        let value = serde_json::to_vec(&pod(key, app)).expect("json").into();
        let created = !self.exists(key);
        self.change(key, ChangeKind::Encrypted { value, created })
    }

    pub(super) fn delete(&self, key: &str) -> u64 {
        self.change(key, ChangeKind::Delete)
    }

    /// Writes objects with an `app` label in one revision, or deletes those without one.
    pub(super) fn together(&self, changes: &[(&str, Option<&str>)]) -> u64 {
        let kinds = changes.iter().map(|(key, app)| match app {
            None => (*key, ChangeKind::Delete),
            Some(app) => {
                let value = serde_json::to_vec(&pod(key, app)).expect("json").into();
                let created = !self.exists(key);
                (*key, ChangeKind::Put { value, created })
            }
        });
        let kinds: Vec<_> = kinds.collect();
        self.changes(kinds)
    }

    fn change(&self, key: &str, kind: ChangeKind) -> u64 {
        self.changes([(key, kind)])
    }

    fn changes<'a>(&self, kinds: impl IntoIterator<Item = (&'a str, ChangeKind)>) -> u64 {
        let mut inner = self.state();
        let changes = inner.write(kinds);
        let revision = inner.revision;
        if inner.held.is_none() {
            inner.send(&ChangeBatch { changes, revision });
        }
        revision
    }

    /// Returns true if a key exists.
    pub(super) fn exists(&self, key: &str) -> bool {
        self.state().live.contains(key)
    }

    /// Returns the objects under a prefix, as a watch delivers them.
    pub(super) fn listed(&self, prefix: &str) -> Vec<String> {
        let inner = self.state();
        let content = inner.content(inner.revision).into_iter();
        let under = content.filter(|(key, _)| key.starts_with(prefix));
        let followed = |(key, raw): (&str, RawObject)| {
            let name = key.rsplit('/').next().unwrap_or_default();
            format!("+{name}@{}", raw.revision)
        };
        under.map(followed).collect()
    }

    /// Deletes an object without sending the change to the streams.
    pub(super) fn delete_unsent(&self, key: &str) {
        self.state().write([(key, ChangeKind::Delete)]);
    }

    /// Sends the changes from a revision on once more.
    pub(super) fn repeat_from(&self, revision: u64) {
        let mut inner = self.state();
        for batch in inner.batches(revision..=u64::MAX) {
            inner.send(&batch);
        }
    }

    /// Returns the number of requests for encrypted values that have neither been answered nor dropped.
    pub(super) fn decryptions_now(&self) -> usize {
        Arc::strong_count(&self.state().requested) - 1
    }

    /// Rolls the store back to its state at a revision. The streams break.
    pub(super) fn roll_back(&self, revision: u64) {
        self.fall_back(revision);
        self.break_streams();
    }

    /// Rolls the store back to its state at a revision. The streams stay open.
    pub(super) fn fall_back(&self, revision: u64) {
        let mut inner = self.state();
        inner.revision = revision;
        inner.compacted = inner.compacted.min(revision);
        inner.log.retain(|it| it.revision <= revision);
        let live = inner.content(revision).into_keys().map(str::to_owned);
        inner.live = live.collect();
    }

    /// Holds changes and progress notices back from the streams.
    pub(super) fn hold(&self) {
        let newest = self.state().revision;
        self.hold_after(newest);
    }

    /// Holds back the changes after a revision.
    pub(super) fn hold_after(&self, revision: u64) {
        self.state().held = Some(revision);
    }

    /// Sends what was held back.
    pub(super) fn release(&self) {
        let mut inner = self.state();
        let Some(from) = inner.held.take() else {
            return;
        };
        let held = inner.batches(from + 1..=u64::MAX);
        for batch in held {
            inner.send(&batch);
        }
    }

    /// Breaks all streams.
    pub(super) fn break_streams(&self) {
        for follower in self.state().followers.drain(..) {
            let broken = StorageError::Unreachable {
                message: "the stream broke".to_owned(),
            };
            let _ = follower.send(Err(broken));
        }
    }

    /// Compacts all history, while the streams go on.
    pub(super) fn compact(&self) {
        let mut inner = self.state();
        inner.compacted = inner.revision;
    }

    /// Compacts all history, so that the streams end.
    pub(super) fn lose_history(&self) {
        let mut inner = self.state();
        inner.revision += 1;
        inner.compacted = inner.revision;
        for follower in inner.followers.drain(..) {
            let _ = follower.send(Err(StorageError::WatchExpired));
        }
    }
}

impl Inner {
    fn send(&mut self, batch: &ChangeBatch) {
        self.followers
            .retain(|follower| follower.send(Ok(batch.clone())).is_ok());
    }

    /// Returns the changes of these revisions, one a batch.
    fn batches(&self, revisions: RangeInclusive<u64>) -> Vec<ChangeBatch> {
        let changes = self
            .log
            .iter()
            .filter(|it| revisions.contains(&it.revision));
        let changes: Vec<_> = changes.cloned().collect();
        let batches = changes.chunk_by(|one, other| one.revision == other.revision);
        let batches = batches.map(|changes| ChangeBatch {
            changes: changes.to_vec(),
            revision: changes[0].revision,
        });
        batches.collect()
    }

    /// Writes at one revision, without sending the changes to the streams.
    fn write<'a>(&mut self, kinds: impl IntoIterator<Item = (&'a str, ChangeKind)>) -> Vec<Change> {
        self.revision += 1;
        let mut changes = Vec::new();
        for (key, kind) in kinds {
            match kind {
                ChangeKind::Put { .. } | ChangeKind::Encrypted { .. } => {
                    self.live.insert(key.to_owned())
                }
                ChangeKind::Delete => self.live.remove(key),
            };
            changes.push(Change {
                key: key.to_owned(),
                revision: self.revision,
                kind,
            });
        }
        self.log.extend(changes.clone());
        changes
    }

    /// Returns the keys whose newest value at a revision is encrypted.
    fn encrypted(&self, revision: u64) -> BTreeSet<&str> {
        let mut encrypted = BTreeSet::new();
        for change in self.log.iter().filter(|it| it.revision <= revision) {
            match change.kind {
                ChangeKind::Encrypted { .. } => encrypted.insert(&*change.key),
                ChangeKind::Put { .. } | ChangeKind::Delete => encrypted.remove(&*change.key),
            };
        }
        encrypted
    }

    /// Returns the state at a revision.
    fn content(&self, revision: u64) -> BTreeMap<&str, RawObject> {
        let mut content = BTreeMap::new();
        for change in self.log.iter().filter(|it| it.revision <= revision) {
            match &change.kind {
                ChangeKind::Delete => content.remove(&*change.key),
                ChangeKind::Put { value, .. } | ChangeKind::Encrypted { value, .. } => content
                    .insert(
                        &*change.key,
                        RawObject {
                            key: change.key.clone(),
                            value: value.clone(),
                            revision: change.revision,
                        },
                    ),
            };
        }
        content
    }
}

#[async_trait]
impl ChangeSource for Script {
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let page_time = self.state().page_time;
        if !page_time.is_zero() {
            tokio::time::sleep(page_time).await;
        }
        while self.state().hung.as_deref() == Some(prefix) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut inner = self.state();
        inner.pages += 1;
        let revision = if revision == 0 {
            inner.revision
        } else {
            revision
        };
        if revision < inner.compacted {
            return Err(StorageError::ListExpired);
        }
        // A store that was put back has not come to that revision yet.
        if !inner.reachable || revision > inner.revision {
            return Err(unreachable());
        }
        let content = inner.content(revision);
        let mut items = content
            .into_values()
            .filter(|it| it.key.starts_with(prefix) && after.is_none_or(|after| &*it.key > after));
        let page: Vec<_> = items.by_ref().take(limit as usize).collect();
        let mut keys = page.iter().map(|it| &*it.key);
        let decrypted = inner.decryption == Decryption::Answers;
        if !decrypted && keys.any(|key| inner.encrypted(revision).contains(key)) {
            return Err(encrypted());
        }
        Ok(ChangePage {
            revision,
            items: page,
            more: items.next().is_some(),
        })
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let falls_back = self.state().falls_back.take();
        if let Some(revision) = falls_back {
            self.fall_back(revision);
        }
        let mut inner = self.state();
        inner.follows += 1;
        if !inner.reachable {
            return Err(unreachable());
        }
        let (sender, mut receiver) = mpsc::unbounded_channel();
        if revision < inner.compacted {
            let _ = sender.send(Err(StorageError::WatchExpired));
        }
        let followed = revision + 1..=inner.held.unwrap_or(u64::MAX);
        for batch in inner.batches(followed) {
            let _ = sender.send(Ok(batch));
        }
        inner.followers.push(sender);
        Ok(futures::stream::poll_fn(move |context| receiver.poll_recv(context)).boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        let mut inner = self.state();
        inner.progress_requests += 1;
        if inner.held.is_none() && inner.answers_progress {
            let notice = ChangeBatch {
                changes: Vec::new(),
                revision: inner.revision,
            };
            inner.send(&notice);
        }
        Ok(())
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        if self.state().probe_time.is_zero() {
            tokio::task::yield_now().await;
        }
        let (revision, probe_time) = {
            let mut inner = self.state();
            inner.probes += 1;
            (inner.revision, inner.probe_time)
        };
        // What is written on the way back is not in the answer.
        if !probe_time.is_zero() {
            tokio::time::sleep(probe_time).await;
        }
        Ok(revision)
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        Ok(self.state().compacted.max(1))
    }

    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError> {
        let inner = self.state();
        let written = |it: &Change| it.revision == revision && it.key == key;
        Ok(revision < inner.compacted || inner.log.iter().any(written))
    }

    async fn decrypt(&self, _: &str, value: Bytes) -> Result<Bytes, StorageError> {
        let _requested = Arc::clone(&self.state().requested);
        loop {
            let decrypting = self.state().decryption;
            match decrypting {
                Decryption::Answers => return Ok(value),
                Decryption::AnswersOnce => {
                    self.state().decryption = Decryption::Hangs;
                    return Ok(value);
                }
                Decryption::Fails => return Err(encrypted()),
                Decryption::Hangs => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn progress_is_trusted(&self) -> bool {
        self.state().trusted
    }

    fn reaches_newest(&self) -> bool {
        self.state().reaches_newest
    }
}

/// A store whose every list is of revision 4242 and whose every object is corrupt.
#[derive(Debug, Default)]
pub(super) struct CountingStore {
    versioner: Versioner,
    pub(super) lists: Mutex<usize>,
    /// The selection of the last list.
    pub(crate) selection: Mutex<SelectionPredicate>,
    /// The time that a list takes.
    pub(super) list_time: Mutex<Duration>,
    /// The revision up to which it says that it has been compacted.
    pub(super) compacted: Mutex<u64>,
    /// The suggestion that came with the last write.
    pub(super) suggested: Mutex<Option<Arc<Object>>>,
}

/// The revision of the store's lists.
pub(super) const STORE_REVISION: u64 = 4242;

/// The number of objects that the store counts.
pub(super) const STORE_OBJECTS: u64 = 17;

#[async_trait]
impl Interface for CountingStore {
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
        options: DeleteOptions,
        _check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        *self.suggested.lock().expect("sound") = options.cached_existing;
        Err(unreachable())
    }

    async fn watch(&self, _key: &str, _options: ListOptions) -> Result<WatchStream, StorageError> {
        Err(unreachable())
    }

    async fn get(&self, key: &str, _options: GetOptions) -> Result<Arc<Object>, StorageError> {
        Err(StorageError::Corrupt {
            keys: vec![(key.to_owned(), "as configured".to_owned())],
        })
    }

    async fn get_list(&self, _key: &str, options: ListOptions) -> Result<List, StorageError> {
        *self.selection.lock().expect("sound") = options.predicate;
        *self.lists.lock().expect("sound") += 1;
        let list_time = *self.list_time.lock().expect("sound");
        if !list_time.is_zero() {
            tokio::time::sleep(list_time).await;
        }
        Ok(List {
            revision: STORE_REVISION,
            ..List::default()
        })
    }

    async fn guaranteed_update(
        &self,
        _key: &str,
        options: UpdateOptions,
        _update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        *self.suggested.lock().expect("sound") = options.cached_existing;
        Err(unreachable())
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        Ok(Stats {
            object_count: STORE_OBJECTS,
            ..Stats::default()
        })
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Err(unreachable())
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Ok(ResourceVersion(STORE_REVISION))
    }

    fn compact_revision(&self) -> u64 {
        *self.compacted.lock().expect("sound")
    }
}

/// Returns a pod under `/pods/<namespace>/<name>`.
pub(super) fn pod(key: &str, app: &str) -> Value {
    let mut parts = key.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let namespace = parts.next().unwrap_or_default();
    json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}})
}

fn encrypted() -> StorageError {
    StorageError::Internal {
        message: "there is no key".to_owned(),
    }
}

fn unreachable() -> StorageError {
    StorageError::Unreachable {
        message: "as configured".to_owned(),
    }
}
