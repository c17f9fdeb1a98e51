//! Reads of a cache that has no store behind it.
//!
//! They are those of an [`Interface`](crate::storage::Interface), and routed by the same table ([`super::decide`]).
//! They fail where a [`CacheDelegator`](super::CacheDelegator) asks its store: for a value that cannot be decoded, a
//! revision that has left the window, and whenever the cache does not become as fresh as demanded.

use std::sync::Arc;

use super::answer::needs_store;
use super::decide::{self, Fresh};
use super::handle::Cacher;
use crate::meta::Object;
use crate::storage::{GetOptions, List, ListOptions, StorageError, WatchStream, prepare_key};

impl Cacher {
    /// Reads one object from memory.
    ///
    /// # Errors
    /// [`StorageError::KeyNotFound`]; [`StorageError::NotReady`]; [`StorageError::TooLargeResourceVersion`] when the
    /// cache does not become so fresh in time; [`StorageError::Corrupt`].
    pub async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        self.check_ready()?;
        let fresh = decide::get(options).unwrap_or(Fresh::MostRecent);
        self.answer_get(key, fresh).await?.without_store()
    }

    /// Reads everything under a key from memory, in key order, or the key alone if not recursive.
    ///
    /// # Errors
    /// As [`Cacher::get`], [`StorageError::ListExpired`] when the revision has left the window,
    /// [`StorageError::InvalidContinue`]; [`StorageError::Internal`] as long as any value of the type cannot be
    /// decoded.
    pub async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        prepare_key("", key, options.recursive)?;
        self.check_ready()?;
        let plan = decide::list(key, &options)?
            .ok_or_else(|| needs_store("a list of one key has no exact version here"))?;
        let (recursive, predicate) = (options.recursive, &options.predicate);
        let answer = self.answer_list(key, recursive, predicate, &plan).await?;
        answer.without_store()
    }

    /// Starts a watch of everything under a key, or of the key alone if not recursive. Any error but those here is the
    /// last item of the stream.
    ///
    /// # Errors
    /// [`StorageError::NotReady`], [`StorageError::InvalidKey`].
    pub async fn watch(
        &self,
        key: &str,
        options: ListOptions,
    ) -> Result<WatchStream, StorageError> {
        prepare_key("", key, options.recursive)?;
        self.start_watch(key, options).await
    }
}
