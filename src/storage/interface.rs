//! The interface of a store of objects of one type.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{
    DeleteOptions, GetOptions, ListOptions, Rejection, StorageError, UpdateOptions, Versioner,
    WatchStream,
};
use crate::budget::Share;
use crate::meta::{Object, ResourceVersion, ShardSelector};

/// A store of the objects of one type: Kubernetes' `storage.Interface`.
///
/// Keys are `/<resource prefix>/[<namespace>/]<name>`, without the store's own prefix; the key of a
/// list ends with `/` unless the list is of a single key.
#[async_trait]
pub trait Interface: Send + Sync + Debug {
    /// Returns how this store writes revisions into objects.
    fn versioner(&self) -> &Versioner;

    /// Stores a new object, for `ttl` seconds if given, and returns it as stored.
    ///
    /// # Errors
    /// [`StorageError::KeyExists`]; [`StorageError::VersionOnCreate`] if the object has a version.
    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError>;

    /// Deletes the object if the preconditions hold and `check` agrees, and returns its last content at the revision of
    /// the deletion. `check` is called with the content to be deleted, and called again if the object changes
    /// meanwhile.
    ///
    /// # Errors
    /// [`StorageError::KeyNotFound`], [`StorageError::InvalidObject`] when a precondition fails,
    /// [`StorageError::Rejected`] with the error of `check`.
    async fn delete(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError>;

    /// Starts a watch of everything under a key, or of the key alone if not recursive.
    ///
    /// # Errors
    /// The errors before the stream begins: a store that is not ready, a bad version. Any later one, expiry included,
    /// is the stream's last item.
    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError>;

    /// Reads one object.
    ///
    /// # Errors
    /// [`StorageError::KeyNotFound`]; [`StorageError::TooLargeResourceVersion`].
    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError>;

    /// Reads everything under a key in key order, or the key alone if not recursive.
    ///
    /// # Errors
    /// [`StorageError::ListExpired`] and [`StorageError::ContinueExpired`],
    /// [`StorageError::TooLargeResourceVersion`], [`StorageError::InvalidContinue`],
    /// [`StorageError::Corrupt`] when an object cannot be read, [`StorageError::OutOfMemory`].
    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError>;

    /// Updates an object by a function of its current content, which is called again whenever another writer was
    /// faster. With `ignore_not_found` the function may also create it. An update that changes nothing writes nothing.
    ///
    /// # Errors
    /// [`StorageError::KeyNotFound`], [`StorageError::InvalidObject`] when a precondition fails,
    /// [`StorageError::Rejected`] with the function's error about current content.
    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError>;

    /// Returns an object as it would be read at a revision after it had been written. Nothing is written.
    ///
    /// # Errors
    /// [`StorageError::Internal`] when it cannot be written.
    async fn preview(&self, object: &Value, revision: u64) -> Result<Arc<Object>, StorageError> {
        let object = self.versioner().preview(object);
        object
            .map(|object| Arc::new(object.at_revision(revision)))
            .map_err(|error| StorageError::Internal {
                message: error.to_string(),
            })
    }

    /// Returns how many objects there are and how large they are on average.
    ///
    /// # Errors
    /// When the store cannot be reached.
    async fn stats(&self) -> Result<Stats, StorageError>;

    /// Checks that the store can serve now.
    ///
    /// # Errors
    /// [`StorageError::NotReady`] with the reason.
    fn readiness_check(&self) -> Result<(), StorageError>;

    /// Requests a progress notice on the store's watches.
    ///
    /// # Errors
    /// When the store cannot be reached.
    async fn request_watch_progress(&self) -> Result<(), StorageError>;

    /// Returns the store's newest revision as of some moment after the call.
    ///
    /// # Errors
    /// When the store cannot be reached.
    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError>;

    /// Returns the revision up to which history is known to be compacted; 0 if none is.
    fn compact_revision(&self) -> u64;
}

/// A list of objects, all as of one revision.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The revision of the list and of its continuation.
    pub revision: u64,
    /// The objects in key order.
    pub items: Vec<Arc<Object>>,
    /// The token with which to request the next page; `None` on the last one.
    pub continue_token: Option<String>,
    /// The number of objects after this page; known only without selectors.
    pub remaining_item_count: Option<u64>,
    /// The shard selector by which the objects were selected; empty if there was none.
    pub shard: ShardSelector,
    /// The keys that were skipped because their objects cannot be read, and the errors; see
    /// [`ListOptions::skip_corrupt`].
    pub corrupt: Vec<(String, String)>,
    /// The share of the memory budget for the objects, if the list alone holds them and [`ListOptions::memory`] was
    /// set.
    pub memory: Option<Arc<Share>>,
}

/// The size of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of objects of the type.
    pub object_count: u64,
    /// The mean size of their stored form in bytes; 0 when unknown.
    pub estimated_average_object_size_bytes: u64,
}

/// A function from an object's current content to its next content.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use ringwatch::clock::Clock;
/// use ringwatch::meta::Object;
/// use ringwatch::storage::backend::embedded::Embedded;
/// use ringwatch::storage::{
///     Interface, NextContent, Rejection, TryUpdate, UpdateOptions, etcd3,
/// };
/// use serde_json::{Value, json};
///
/// /// Counts up; creates the counter if there is none.
/// struct Increment;
///
/// #[async_trait]
/// impl TryUpdate for Increment {
///     async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
///         let count = match existing {
///             Some(object) => serde_json::from_slice::<Value>(&object.bytes())?["count"].as_u64(),
///             None => None,
///         };
///         let object = json!({
///             "kind": "Counter",
///             "apiVersion": "example.com/v1",
///             "metadata": {"name": "visits"},
///             "count": count.unwrap_or_default() + 1,
///         });
///         Ok(NextContent { object, ttl: None })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Clock::real();
/// let backend = Arc::new(Embedded::in_memory(clock.clone()));
/// let store = etcd3::Store::new(
///     backend,
///     etcd3::Config::new("/registry", "/counters", clock),
/// );
/// for expected in [1, 2] {
///     let options = UpdateOptions {
///         ignore_not_found: true,
///         ..UpdateOptions::default()
///     };
///     let counter = store.guaranteed_update("/counters/visits", options, &mut Increment).await?;
///     let value: Value = serde_json::from_slice(&counter.bytes())?;
///     assert_eq!(value["count"], expected);
/// }
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait TryUpdate: Send {
    /// Returns the next content for the current one, which is `None` if there is no object.
    ///
    /// # Errors
    /// A [`Rejection`] ends the update, unless the content turns out to be outdated.
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection>;
}

/// The next content of an object, returned by [`TryUpdate`].
#[derive(Clone, Debug)]
pub struct NextContent {
    /// The next content. A resource version in it is ignored.
    pub object: Value,
    /// The time to live in seconds; `None` for ever.
    pub ttl: Option<u64>,
}

/// A check of an object right before it is deleted.
#[async_trait]
pub trait DeletionCheck: Send {
    /// Checks that this content may be deleted.
    ///
    /// # Errors
    /// A [`Rejection`] ends the deletion, unless the content turns out to be outdated.
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection>;
}

/// Agrees to every deletion.
#[derive(Clone, Copy, Debug)]
pub struct NoCheck;

#[async_trait]
impl DeletionCheck for NoCheck {
    async fn check(&mut self, _existing: &Object) -> Result<(), Rejection> {
        Ok(())
    }
}
