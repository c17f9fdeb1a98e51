//! The answers of the store: to the cache that follows it, and to clients that the cache sends on to it.

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::Value;
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::meta::{Object, ResourceVersion};
use shuttle_tests::storage::{
    ChangePage, ChangeSource, ChangeStream, DeleteOptions, DeletionCheck, GetOptions, Interface,
    List, ListOptions, RawObject, SelectionPredicate, Stats, StorageError, TryUpdate,
    UpdateOptions, Versioner, WatchStream,
};
use shuttle_tests::sync::{Arc, Mutex, MutexGuard};

use super::history::ENCRYPTED_PREFIX;
use super::{Entry, Follower, Inner, Store, unreachable};

/// The most times that a response yields to other tasks.
const ANSWER_YIELDS_MAX: usize = 8;

/// The probability that an encrypted value cannot be read when it is asked for.
const UNREADABLE: f64 = 0.1;

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
        Ok(revision < inner.compacted || inner.history().log.iter().any(written))
    }

    async fn decrypt(&self, _key: &str, value: Bytes) -> Result<Bytes, StorageError> {
        for _ in 0..thread_rng().gen_range(0..ANSWER_YIELDS_MAX) {
            yield_now().await;
        }
        if thread_rng().gen_bool(UNREADABLE) {
            return Err(unreachable());
        }
        Ok(value.slice(ENCRYPTED_PREFIX.len()..))
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
        let revision = inner.history().revision;
        if requested > revision {
            return Err(StorageError::TooLargeResourceVersion {
                requested,
                current: revision,
                retry_after_seconds: 1,
            });
        }
        let found = inner.list(key, revision).into_iter();
        let mut found = found.filter(|it| it.key == key);
        let raw = found.next().ok_or_else(|| StorageError::KeyNotFound {
            key: key.to_owned(),
            revision,
        })?;
        Ok(self.decode(&raw))
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let exact = options.resource_version.map_or(0, |version| version.0);
        let (revision, raw, _answering) = {
            let mut inner = self.lock();
            inner.lists += 1;
            let revision = if exact == 0 {
                inner.history().revision
            } else {
                exact
            };
            if revision < inner.compacted {
                return Err(StorageError::ListExpired);
            }
            let raw = inner.list(key, revision);
            (revision, raw, Answering::count(inner, &self.shared))
        };
        for _ in 0..thread_rng().gen_range(0..ANSWER_YIELDS_MAX) {
            yield_now().await;
        }
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
        let object = self
            .versioner
            .update_object(raw.value.clone(), raw.revision);
        Arc::new(object.expect("a pod"))
    }
}

/// A list that is being answered, until it is dropped.
struct Answering(Arc<Mutex<Inner>>);

impl Answering {
    fn count(mut inner: MutexGuard<'_, Inner>, shared: &Arc<Mutex<Inner>>) -> Self {
        inner.answering += 1;
        inner.answering_most = inner.answering_most.max(inner.answering);
        Self(Arc::clone(shared))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Ok(mut inner) = self.0.lock() {
            inner.answering -= 1;
        }
    }
}
