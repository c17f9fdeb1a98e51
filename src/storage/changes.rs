//! The interface between a cache and the store underneath: raw objects, and the changes of all types in one order.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::StorageError;

/// All changes after a revision, in batches that never split a revision. An error is the last item:
/// [`StorageError::WatchExpired`] when the history is compacted; after any other error the stream may be opened again
/// after the last batch.
pub type ChangeStream = BoxStream<'static, Result<ChangeBatch, StorageError>>;

/// A source of raw objects and changes. Keys are the [`super::Interface`]'s, without the store's
/// own prefix.
///
/// The methods that need not be written are right for a source whose history begins with each start of the cache, is
/// never replaced by an older state, and follows every revision by a batch.
#[async_trait]
pub trait ChangeSource: Send + Sync + Debug {
    /// Reads at most `limit` objects whose keys begin with `prefix`, after the key `after` if given, at `revision` (0:
    /// the newest, which the page then names).
    ///
    /// # Errors
    /// [`StorageError::ListExpired`] when the revision is compacted; transport errors; any error because of which a
    /// value cannot be read now.
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
    /// Transport errors. Compaction is an error of the stream.
    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError>;

    /// Requests a progress notice on the followed stream.
    ///
    /// # Errors
    /// Transport errors.
    async fn request_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Returns the newest revision as of some moment after the call.
    ///
    /// # Errors
    /// Transport errors.
    async fn current_revision(&self) -> Result<u64, StorageError>;

    /// Returns the oldest revision that can be read and followed. Compaction may raise it at any time.
    ///
    /// # Errors
    /// Transport errors.
    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        self.current_revision().await
    }

    /// Returns true if a key was written at a revision. Returns true as well if that is not known any more, because the
    /// revision is compacted.
    ///
    /// # Errors
    /// Transport errors.
    async fn has_written(&self, _key: &str, _revision: u64) -> Result<bool, StorageError> {
        Ok(true)
    }

    /// Reads the value of a change that is [`ChangeKind::Encrypted`].
    ///
    /// # Errors
    /// An explanation of why it cannot be read now. The value of the same key in a page may be readable later.
    async fn decrypt(&self, _key: &str, value: Bytes) -> Result<Bytes, StorageError> {
        Ok(value)
    }

    /// Returns true if a progress notice never overtakes an event: false for etcd before 3.4.31 and 3.5.13.
    fn progress_is_trusted(&self) -> bool {
        true
    }

    /// Returns true if the followed stream comes to the newest revision soon, by the change that made it or by a
    /// progress notice on request. False if revisions count changes that the stream does not have, and it cannot be
    /// asked.
    fn reaches_newest(&self) -> bool {
        true
    }
}

/// A page of raw objects.
#[derive(Clone, Debug)]
pub struct ChangePage {
    /// The revision of the page.
    pub revision: u64,
    /// The objects in key order.
    pub items: Vec<RawObject>,
    /// True if more objects follow.
    pub more: bool,
}

impl ChangePage {
    /// Returns the last page of a list.
    #[must_use]
    pub fn last(revision: u64, items: Vec<RawObject>) -> Self {
        Self {
            revision,
            items,
            more: false,
        }
    }
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

impl RawObject {
    /// Returns an object by its key, its stored form, and the revision that wrote it.
    pub fn new(key: impl Into<String>, value: impl Into<Bytes>, revision: u64) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            revision,
        }
    }
}

/// The changes up to a revision, after those of the previous batch.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    /// The changes in order; empty for a progress notice.
    pub changes: Vec<Change>,
    /// The revision up to which every change has been delivered with this batch.
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

impl Change {
    /// Returns the change that wrote an object, which is new if it was `created`.
    #[must_use]
    pub fn put(object: RawObject, created: bool) -> Self {
        let RawObject {
            key,
            value,
            revision,
        } = object;
        Self {
            key,
            revision,
            kind: ChangeKind::Put { value, created },
        }
    }
}

/// A kind of change of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was written.
    Put {
        /// The stored form of the object.
        value: Bytes,
        /// True if the key did not exist before.
        created: bool,
    },
    /// It was written with a value that cannot be read without waiting for something that other types need not wait
    /// for: [`ChangeSource::decrypt`] waits.
    Encrypted {
        /// The value, which is no object.
        value: Bytes,
        /// True if the key did not exist before.
        created: bool,
    },
    /// It was deleted, or its lease ran out.
    Delete,
}
