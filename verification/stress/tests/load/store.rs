//! A store of pods that remembers the state after every change, so that it can say what must be
//! seen of it.

use std::fmt;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use futures::StreamExt;
use imbl::OrdMap;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, DeleteOptions,
    DeletionCheck, GetOptions, Interface, List, ListOptions, RawObject, Stats, StorageError,
    TryUpdate, UpdateOptions, Versioner, WatchStream,
};
use serde_json::Value;
use tokio::sync::watch;

/// The most changes in a batch; those of one revision stay together.
const BATCH_CHANGES_MAX: usize = 500;

/// A pod's label, or none when there is no pod.
pub(crate) type Label = Option<&'static str>;

/// Each key's revision and label.
pub(crate) type State = OrdMap<Arc<str>, (u64, &'static str)>;

/// The store: a source of changes for the cache, and what the cache falls back to.
pub(crate) struct Store {
    inner: RwLock<Inner>,
    /// Changes when there is something for followers to look at.
    news: watch::Sender<u64>,
    versioner: Versioner,
}

struct Inner {
    /// Every change, in order.
    log: Vec<Entry>,
    state: State,
    revision: u64,
    /// The revision before which following and listing fail.
    compacted: u64,
    /// The number of times that all streams have been broken, and that progress has been requested.
    breaks: u64,
    questions: u64,
    /// The last revision that there will be, once known.
    last: Option<u64>,
}

/// A change, what was there before, and the state after it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) revision: u64,
    pub(crate) key: Arc<str>,
    pub(crate) before: Label,
    pub(crate) after: Label,
    state: State,
}

/// A stream of changes, and the position that it has come to.
struct Follower {
    store: Arc<Store>,
    position: u64,
    breaks: u64,
    questions: u64,
    news: watch::Receiver<u64>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            log: Vec::new(),
            state: State::new(),
            revision: 1,
            compacted: 0,
            breaks: 0,
            questions: 0,
            last: None,
        };
        Self {
            inner: RwLock::new(inner),
            news: watch::Sender::new(0),
            versioner: Versioner::default(),
        }
    }

    /// Writes or deletes keys in one revision, and returns that.
    pub(crate) fn write(&self, changes: &[(Arc<str>, Label)]) -> u64 {
        self.change(|inner| inner.write(changes))
    }

    /// There will be no more writes. Returns the last revision.
    pub(crate) fn end(&self) -> u64 {
        self.change(|inner| *inner.last.insert(inner.revision))
    }

    /// Writes, and forgets all history at once: a follower that is behind has a gap.
    pub(crate) fn lose_history(&self, changes: &[(Arc<str>, Label)]) {
        self.change(|inner| inner.compacted = inner.write(changes));
    }

    /// Breaks all streams.
    pub(crate) fn break_streams(&self) {
        self.change(|inner| inner.breaks += 1);
    }

    /// Returns the newest revision: every write that has returned is at or before it.
    pub(crate) fn revision(&self) -> u64 {
        self.read().revision
    }

    /// Returns the last revision that there will be, once known.
    pub(crate) fn last(&self) -> Option<u64> {
        self.read().last
    }

    /// Returns the state at a revision.
    pub(crate) fn state(&self, revision: u64) -> State {
        self.read().state(revision)
    }

    /// Returns the first change from `from` on that concerns a selection, and its place.
    pub(crate) fn next(
        &self,
        from: usize,
        selects: impl Fn(&str, Label) -> bool,
    ) -> Option<(usize, Entry)> {
        let inner = self.read();
        let mut later = inner.log.iter().enumerate().skip(from);
        later
            .find(|(_, it)| selects(&it.key, it.before) || selects(&it.key, it.after))
            .map(|(place, entry)| (place, entry.clone()))
    }

    /// Returns the place of the first change after a revision.
    pub(crate) fn place_after(&self, revision: u64) -> usize {
        self.read().after(revision)
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().expect("nobody panics under the lock")
    }

    fn write_lock(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().expect("nobody panics under the lock")
    }

    fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let result = change(&mut self.write_lock());
        self.news.send_modify(|news| *news += 1);
        result
    }
}

impl Inner {
    fn write(&mut self, changes: &[(Arc<str>, Label)]) -> u64 {
        self.revision += 1;
        for (key, after) in changes {
            let before = self.state.get(key).map(|(_, label)| *label);
            match after {
                None => self.state.remove(key),
                Some(label) => self.state.insert(Arc::clone(key), (self.revision, label)),
            };
            if before.is_some() || after.is_some() {
                self.log.push(Entry {
                    revision: self.revision,
                    key: Arc::clone(key),
                    before,
                    after: *after,
                    state: self.state.clone(),
                });
            }
        }
        self.revision
    }

    fn after(&self, revision: u64) -> usize {
        self.log.partition_point(|it| it.revision <= revision)
    }

    fn state(&self, revision: u64) -> State {
        let newest = self.after(revision).checked_sub(1);
        newest.map_or_else(State::new, |place| self.log[place].state.clone())
    }

    fn list(&self, prefix: &str, revision: u64) -> Vec<RawObject> {
        let state = self.state(revision);
        let under = state.iter().filter(|(key, _)| key.starts_with(prefix));
        let raw = under.map(|(key, (revision, label))| RawObject {
            key: key.to_string(),
            value: pod(key, label).into(),
            revision: *revision,
        });
        raw.collect()
    }

    /// Returns the changes after a position; at least a revision's if there is one.
    fn batch(&self, position: u64) -> ChangeBatch {
        let later = &self.log[self.after(position)..];
        let revision = match later.get(BATCH_CHANGES_MAX) {
            Some(beyond) => (beyond.revision - 1).max(later[0].revision),
            None => self.revision,
        };
        let sent = later.iter().take_while(|it| it.revision <= revision);
        ChangeBatch {
            changes: sent.map(Entry::change).collect(),
            revision,
        }
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
            key: self.key.to_string(),
            revision: self.revision,
            kind,
        }
    }
}

impl Follower {
    /// Returns the next batch; an error is the last.
    async fn next(&mut self) -> Result<ChangeBatch, StorageError> {
        loop {
            self.news.borrow_and_update();
            {
                let inner = self.store.read();
                if self.breaks < inner.breaks {
                    return Err(unreachable());
                }
                if self.position < inner.compacted {
                    return Err(StorageError::WatchExpired);
                }
                if self.position < inner.revision || self.questions < inner.questions {
                    let batch = inner.batch(self.position);
                    self.position = batch.revision;
                    self.questions = inner.questions;
                    return Ok(batch);
                }
            }
            self.news.changed().await.map_err(|_| unreachable())?;
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

/// The store as the feed knows it.
#[derive(Clone, Debug)]
pub(crate) struct Source(pub(crate) Arc<Store>);

#[async_trait]
impl ChangeSource for Source {
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let inner = self.0.read();
        let revision = match revision {
            0 => inner.revision,
            revision => revision,
        };
        if revision < inner.compacted {
            return Err(StorageError::ListExpired);
        }
        let mut items = inner.list(prefix, revision);
        items.retain(|it| after.is_none_or(|after| &*it.key > after));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(ChangePage {
            revision,
            items,
            more,
        })
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let news = self.0.news.subscribe();
        let (breaks, questions) = {
            let inner = self.0.read();
            (inner.breaks, inner.questions)
        };
        let follower = Follower {
            store: Arc::clone(&self.0),
            position: revision,
            breaks,
            questions,
            news,
        };
        let stream = futures::stream::unfold(Some(follower), |follower| async {
            let mut follower = follower?;
            let next = follower.next().await;
            let left = next.is_ok().then_some(follower);
            Some((next, left))
        });
        Ok(stream.boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.0.change(|inner| inner.questions += 1);
        Ok(())
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        Ok(self.0.read().compacted.max(1))
    }

    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError> {
        let inner = self.0.read();
        let from = inner.after(revision - 1);
        let at = inner.log[from..].iter();
        let mut at = at.take_while(|it| it.revision == revision);
        Ok(revision < inner.compacted || at.any(|it| *it.key == *key))
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        Ok(self.0.revision())
    }

    fn progress_is_trusted(&self) -> bool {
        true
    }
}

#[async_trait]
impl Interface for Source {
    fn versioner(&self) -> &Versioner {
        &self.0.versioner
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

    async fn get(&self, _key: &str, _options: GetOptions) -> Result<Arc<Object>, StorageError> {
        Err(unreachable())
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let inner = self.0.read();
        let raw = inner.list(key, inner.revision);
        let objects = raw.iter().map(|raw| {
            let object = self
                .0
                .versioner
                .update_object(raw.value.clone(), raw.revision);
            Arc::new(object.expect("a pod"))
        });
        Ok(List {
            revision: inner.revision,
            items: objects
                .filter(|it| options.predicate.matches(it.attributes()))
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
        Ok(ResourceVersion(self.0.revision()))
    }

    fn compact_revision(&self) -> u64 {
        0
    }
}

/// Returns a pod at `/pods/<namespace>/<name>`.
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
        message: "as the test wants it".to_owned(),
    }
}
