//! Decorators of stores, which write only what they change.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, Stats, StorageError,
    TryUpdate, UpdateOptions, Versioner, WatchStream,
};
use crate::meta::{Object, ResourceVersion};

/// A store in front of another one. It is an [`Interface`] too: each method that it does not write itself passes the
/// call on.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use async_trait::async_trait;
/// use ringwatch::clock::Clock;
/// use ringwatch::meta::Object;
/// use ringwatch::storage::backend::embedded::Embedded;
/// use ringwatch::storage::{Delegate, GetOptions, Interface, StorageError, etcd3};
///
/// /// Counts the reads of single objects.
/// #[derive(Debug)]
/// struct CountedGets {
///     store: Arc<dyn Interface>,
///     gets: AtomicU64,
/// }
///
/// #[async_trait]
/// impl Delegate for CountedGets {
///     fn inner(&self) -> &dyn Interface {
///         &*self.store
///     }
///
///     async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
///         self.gets.fetch_add(1, Ordering::Relaxed);
///         self.store.get(key, options).await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StorageError> {
/// let clock = Clock::real();
/// let backend = Arc::new(Embedded::in_memory(clock.clone()));
/// let config = etcd3::Config::new("/registry", "/pods", clock);
/// let counted = Arc::new(CountedGets {
///     store: Arc::new(etcd3::Store::new(backend, config)),
///     gets: AtomicU64::new(0),
/// });
/// let store: Arc<dyn Interface> = counted.clone();
/// assert!(store.get("/pods/a/absent", GetOptions::default()).await.is_err());
/// assert_eq!(store.stats().await?.object_count, 0);
/// assert_eq!(counted.gets.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Delegate: Send + Sync + Debug {
    /// Returns the store to which calls are passed on.
    fn inner(&self) -> &dyn Interface;

    /// See [`Interface::versioner`].
    fn versioner(&self) -> &Versioner {
        self.inner().versioner()
    }

    /// See [`Interface::create`].
    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        self.inner().create(key, object, ttl).await
    }

    /// See [`Interface::delete`].
    async fn delete(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        self.inner().delete(key, options, check).await
    }

    /// See [`Interface::watch`].
    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        self.inner().watch(key, options).await
    }

    /// See [`Interface::get`].
    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        self.inner().get(key, options).await
    }

    /// See [`Interface::get_list`].
    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        self.inner().get_list(key, options).await
    }

    /// See [`Interface::guaranteed_update`].
    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        self.inner().guaranteed_update(key, options, update).await
    }

    /// See [`Interface::preview`].
    async fn preview(&self, object: &Value, revision: u64) -> Result<Arc<Object>, StorageError> {
        self.inner().preview(object, revision).await
    }

    /// See [`Interface::stats`].
    async fn stats(&self) -> Result<Stats, StorageError> {
        self.inner().stats().await
    }

    /// See [`Interface::readiness_check`].
    fn readiness_check(&self) -> Result<(), StorageError> {
        self.inner().readiness_check()
    }

    /// See [`Interface::request_watch_progress`].
    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        self.inner().request_watch_progress().await
    }

    /// See [`Interface::current_resource_version`].
    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        self.inner().current_resource_version().await
    }

    /// See [`Interface::compact_revision`].
    fn compact_revision(&self) -> u64 {
        self.inner().compact_revision()
    }
}

#[async_trait]
impl<D: Delegate> Interface for D {
    fn versioner(&self) -> &Versioner {
        Delegate::versioner(self)
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        Delegate::create(self, key, object, ttl).await
    }

    async fn delete(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        Delegate::delete(self, key, options, check).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        Delegate::watch(self, key, options).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        Delegate::get(self, key, options).await
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        Delegate::get_list(self, key, options).await
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        Delegate::guaranteed_update(self, key, options, update).await
    }

    async fn preview(&self, object: &Value, revision: u64) -> Result<Arc<Object>, StorageError> {
        Delegate::preview(self, object, revision).await
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        Delegate::stats(self).await
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Delegate::readiness_check(self)
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Delegate::request_watch_progress(self).await
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Delegate::current_resource_version(self).await
    }

    fn compact_revision(&self) -> u64 {
        Delegate::compact_revision(self)
    }
}
