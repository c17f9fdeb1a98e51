//! The interface of a cache to the store underneath: its raw content and all its changes, over all types in one order.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::StorageError;

/// All changes after a revision, in batches that never split one. An error is the last item:
/// [`StorageError::WatchExpired`] when the history is compacted, anything else when the stream may
/// be resumed after the last batch.
pub type ChangeStream = BoxStream<'static, Result<ChangeBatch, StorageError>>;

/// A source of raw objects and changes. Keys are the [`super::Interface`]'s, without the store's
/// own prefix.
#[async_trait]
pub trait ChangeSource: Send + Sync + Debug {
    /// Reads a page of what lies under `prefix`, after the key `after` if given, at `revision`
    /// (0: the newest, which the page then names).
    ///
    /// # Errors
    /// [`StorageError::Expired`] when the revision is compacted; transport errors.
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError>;

    /// Follows all changes after `revision`, with progress notices.
    ///
    /// # Errors
    /// Transport errors; expiry is the stream's.
    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError>;

    /// Asks for a progress notice on the followed stream.
    ///
    /// # Errors
    /// Transport errors.
    async fn request_progress(&self) -> Result<(), StorageError>;

    /// The newest revision, as of now.
    ///
    /// # Errors
    /// Transport errors.
    async fn current_revision(&self) -> Result<u64, StorageError>;

    /// The oldest revision that can be read and followed. Compaction may raise it at any time.
    ///
    /// # Errors
    /// Transport errors.
    async fn oldest_revision(&self) -> Result<u64, StorageError>;

    /// Returns true if a revision wrote a key. True as well if that cannot be known any more, because the revision is
    /// compacted.
    ///
    /// # Errors
    /// Transport errors.
    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError>;

    /// Returns true if a progress notice never overtakes an event: false on etcd before 3.4.31 and 3.5.13.
    fn progress_is_trusted(&self) -> bool;
}

/// A page of raw objects.
#[derive(Clone, Debug)]
pub struct ChangePage {
    /// The revision of the page.
    pub revision: u64,
    /// The objects in key order.
    pub items: Vec<RawObject>,
    /// True if there are more.
    pub more: bool,
}

/// A stored object, undecoded.
#[derive(Clone, Debug)]
pub struct RawObject {
    /// Its key.
    pub key: String,
    /// Its stored form.
    pub value: Bytes,
    /// The revision that wrote it.
    pub revision: u64,
}

/// Changes that happened up to a revision.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    /// In order; empty for a progress notice.
    pub changes: Vec<Change>,
    /// Everything up to this revision has been handed over with this batch.
    pub revision: u64,
}

/// A change of one key.
#[derive(Clone, Debug)]
pub struct Change {
    /// The key that changed.
    pub key: String,
    /// The revision of the change.
    pub revision: u64,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// A kind of change of a key.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// It was written.
    Put {
        /// The stored form of the object.
        value: Bytes,
        /// True if the key did not exist before.
        created: bool,
    },
    /// It was deleted, or its lease ran out.
    Delete,
}
