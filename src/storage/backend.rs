//! The key-value stores under the objects, in etcd's terms.
//!
//! A [`Backend`] keeps every version of every key under one revision counter, compares and writes in transactions, and
//! sends the changes after a revision to watches. All of Kubernetes' semantics are in [`super::etcd3`] above it; so
//! both backends pass the same tests.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

#[cfg(any(feature = "embedded", feature = "etcd"))]
mod content_digest;
#[cfg(any(feature = "embedded", feature = "etcd"))]
pub mod copy;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;

#[cfg(any(feature = "embedded", feature = "etcd"))]
pub use content_digest::{ContentDigest, ContentHasher};
pub use error::BackendError;

/// Responses of a watch; an error is the last item. Dropping the stream cancels the watch.
pub type WatchResponses = BoxStream<'static, Result<WatchResponse, BackendError>>;

/// A revisioned key-value store.
#[async_trait]
pub trait Backend: Send + Sync + Debug {
    /// Reads keys at a revision. Linearizable when the revision is 0.
    ///
    /// # Errors
    /// [`BackendError::Compacted`], [`BackendError::FutureRevision`], transport errors.
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError>;

    /// Compares, then does one operation or the other, at one revision. Returns only when the outcome is durable.
    ///
    /// # Errors
    /// Transport errors, [`BackendError::TooLarge`], [`BackendError::LeaseNotFound`].
    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError>;

    /// Watches keys from a revision on.
    ///
    /// # Errors
    /// Transport errors. [`BackendError::Compacted`] is the stream's first item.
    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError>;

    /// Requests a progress response on all watches of this backend that want them. Each follows every event up to its
    /// revision, if [`Backend::progress_is_trusted`].
    ///
    /// # Errors
    /// Transport errors.
    async fn request_progress(&self) -> Result<(), BackendError>;

    /// Returns true if progress responses never overtake events.
    fn progress_is_trusted(&self) -> bool;

    /// Grants a lease for `ttl_seconds`; keys put with it are deleted when it expires.
    ///
    /// # Errors
    /// Transport errors.
    async fn grant_lease(&self, ttl_seconds: i64) -> Result<LeaseId, BackendError>;

    /// Drops the versions that were overwritten or deleted before `revision`. Reading at `revision` itself stays
    /// possible.
    ///
    /// # Errors
    /// [`BackendError::Compacted`] if already compacted, [`BackendError::FutureRevision`].
    async fn compact(&self, revision: u64) -> Result<(), BackendError>;

    /// Returns the oldest revision that can be read and watched from. Compaction may raise it at any time.
    ///
    /// # Errors
    /// Transport errors.
    async fn oldest_revision(&self) -> Result<u64, BackendError>;

    /// Returns the size of the database in bytes.
    ///
    /// # Errors
    /// Transport errors.
    async fn size_bytes(&self) -> Result<u64, BackendError>;
}

/// A lease's number; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// The value; empty if only keys were requested.
    pub value: Bytes,
    /// The revision at which the key was created.
    pub create_revision: u64,
    /// The revision that wrote this version.
    pub mod_revision: u64,
    /// The number of writes since it was created, this one included.
    pub version: u64,
    /// The lease that the key is attached to.
    pub lease: Option<LeaseId>,
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRange {
    /// This key alone.
    Key(String),
    /// The keys from the first up to, not including, the second.
    Span(String, String),
}

impl KeyRange {
    /// Returns the range of all keys that begin with a prefix, which must not be empty.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        Self::Span(prefix.to_owned(), prefix_end(prefix))
    }
}

/// Returns the first key after all that begin with `prefix`. Keys are text without NUL and without the last code
/// points, so that incrementing the last character is enough.
#[must_use]
pub fn prefix_end(prefix: &str) -> String {
    let mut end: Vec<char> = prefix.chars().collect();
    if let Some(last) = end.last_mut() {
        *last = char::from_u32(u32::from(*last) + 1).unwrap_or(char::MAX);
    }
    end.into_iter().collect()
}

/// A request to read a range of keys at one revision.
#[derive(Clone, Debug)]
pub struct RangeRequest {
    /// The keys to read.
    pub range: KeyRange,
    /// The revision to read at; 0 for the newest.
    pub revision: u64,
    /// Maximum number of keys; 0 for all.
    pub limit: u64,
    /// The parts of the keys and values that are returned.
    pub content: RangeContent,
}

/// The content of a read's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeContent {
    /// Keys and values.
    Values,
    /// Keys alone.
    Keys,
    /// The count alone.
    Count,
}

impl RangeRequest {
    /// Creates a request for everything in a range, at the newest revision.
    #[must_use]
    pub fn all(range: KeyRange) -> Self {
        Self {
            range,
            revision: 0,
            limit: 0,
            content: RangeContent::Values,
        }
    }

    /// Creates a request for one key, at the newest revision.
    #[must_use]
    pub fn key(key: impl Into<String>) -> Self {
        Self {
            limit: 1,
            ..Self::all(KeyRange::Key(key.into()))
        }
    }
}

/// The response to a read.
#[derive(Clone, Debug)]
pub struct RangeResponse {
    /// The newest revision at the time of the read.
    pub revision: u64,
    /// The keys that were read, in key order.
    pub kvs: Vec<KeyValue>,
    /// True if there are more keys than the limit.
    pub more: bool,
    /// The number of keys in the range, regardless of the limit.
    pub count: u64,
}

/// A transaction: one comparison, and an operation for either outcome.
#[derive(Clone, Debug)]
pub struct Txn {
    /// The condition of the transaction.
    pub compare: Compare,
    /// The operation if the condition holds.
    pub then: Op,
    /// The operation if it does not hold.
    pub otherwise: Option<Op>,
}

/// A comparison; a key that does not exist has revision and version 0.
#[derive(Clone, Debug)]
pub enum Compare {
    /// The key was last written at this revision.
    ModRevision(String, u64),
    /// The key has been written so many times.
    Version(String, u64),
}

/// An operation of a transaction.
#[derive(Clone, Debug)]
pub enum Op {
    /// Writes a key.
    Put {
        /// The key.
        key: String,
        /// Its value.
        value: Bytes,
        /// The lease to attach the key to.
        lease: Option<LeaseId>,
    },
    /// Deletes a key.
    Delete {
        /// The key.
        key: String,
    },
    /// Reads a key.
    Get {
        /// The key.
        key: String,
    },
}

/// The outcome of a transaction.
#[derive(Clone, Debug)]
pub struct TxnResponse {
    /// The revision of the write, or the newest one if nothing was written.
    pub revision: u64,
    /// True if the condition held.
    pub succeeded: bool,
    /// The key that an [`Op::Get`] on the branch taken found.
    pub found: Option<KeyValue>,
}

/// A request to follow the changes of a range of keys.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// The keys to follow.
    pub range: KeyRange,
    /// The first revision, inclusive; 0 for the next one.
    pub start_revision: u64,
    /// True if each event has the previous version.
    pub previous: bool,
    /// True if progress responses are sent.
    pub progress: bool,
}

/// A response of a watch.
#[derive(Clone, Debug)]
pub struct WatchResponse {
    /// For a progress response, the revision up to which everything has been sent; otherwise the newest revision when
    /// it was sent.
    pub revision: u64,
    /// All events of one or more revisions, complete; empty for a progress response.
    pub events: Vec<Event>,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of change.
    pub kind: EventKind,
    /// The new version; for a deletion only the key and the revision.
    pub kv: KeyValue,
    /// The previous version, if it was requested, exists and is not compacted.
    pub previous: Option<KeyValue>,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The key was written.
    Put,
    /// It was deleted, or its lease expired.
    Delete,
}
