//! A store with its watch cache in front of it, as one [`Interface`].
//!
//! Reads are routed as [`super::decide`] says. Writes go to the store; the cached object is passed along as the content
//! to try first.

use std::sync::Arc;

use async_trait::async_trait;

use super::answer::CacheAnswer;
use super::decide;
use super::handle::Cacher;
use super::state_of_store::watch_from_store;
use crate::meta::Object;
use crate::storage::{
    Delegate, DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, StorageError,
    TryUpdate, UpdateOptions, WatchStream, prepare_key,
};

/// A store with a watch cache in front of it. The [crate] shows how one is made.
#[derive(Debug)]
pub struct CacheDelegator {
    cacher: Arc<Cacher>,
    store: Arc<dyn Interface>,
}

impl CacheDelegator {
    /// Puts a type's cache in front of its store.
    #[must_use]
    pub fn new(cacher: Arc<Cacher>, store: Arc<dyn Interface>) -> Self {
        Self { cacher, store }
    }

    /// Returns the handle of the cache.
    #[must_use]
    pub fn cacher(&self) -> &Arc<Cacher> {
        &self.cacher
    }
}

#[async_trait]
impl Delegate for CacheDelegator {
    fn inner(&self) -> &dyn Interface {
        &*self.store
    }

    async fn delete(
        &self,
        key: &str,
        mut options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        options.cached_existing = self.cacher.cached(key);
        self.store.delete(key, options, check).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        prepare_key("", key, options.recursive)?;
        if self.cacher.needs_state_of_store(&options).await {
            return watch_from_store(&self.cacher, &*self.store, key, options).await;
        }
        self.cacher.start_watch(key, options).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let fresh = decide::get(options).filter(|_| self.cacher.readiness().is_ready());
        let Some(fresh) = fresh else {
            return self.store.get(key, options).await;
        };
        match self.cacher.answer_get(key, fresh).await? {
            CacheAnswer::Here(object) => Ok(object),
            CacheAnswer::AskStore(_) => self.store.get(key, options).await,
            CacheAnswer::Lagging(_permit, _) => self.store.get(key, options).await,
        }
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        prepare_key("", key, options.recursive)?;
        let Some(plan) = decide::list(key, &options)? else {
            return self.store.get_list(key, options).await;
        };
        // The window may still hold revisions that are compacted; serving them would keep lists from ever expiring.
        let compacted = self.store.compact_revision();
        if plan.exact.is_some_and(|exact| exact < compacted) {
            return self.store.get_list(key, options).await;
        }
        let predicate = &options.predicate;
        if let Err(not_ready) = self.cacher.check_ready() {
            // A page without selectors costs the store little; anything else would hit it from all clients at once.
            let selects = options.selects_later || !predicate.is_everything();
            if predicate.limit > 0 && !selects {
                return self.store.get_list(key, options).await;
            }
            return Err(not_ready);
        }
        let recursive = options.recursive;
        let answer = self.cacher.answer_list(key, recursive, predicate, &plan);
        match answer.await? {
            CacheAnswer::Here(list) => Ok(list),
            CacheAnswer::AskStore(_) => self.store.get_list(key, options).await,
            CacheAnswer::Lagging(_permit, _) => self.store.get_list(key, options).await,
        }
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        mut options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        options.cached_existing = self.cacher.cached(key);
        self.store.guaranteed_update(key, options, update).await
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        self.cacher.check_ready()
    }
}
