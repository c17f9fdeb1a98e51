//! The errors of stores.

use std::sync::Arc;

use super::{ContinueTokenError, InvalidKey};
use crate::budget::Exceeded;
use crate::meta::InvalidResourceVersion;

/// The most corrupt keys that an error names; if there are more, it has one more entry that says so.
pub const CORRUPT_KEYS_MAX: usize = 100;

/// An error of an update function or a deletion check, which belongs to a higher layer and is passed on unchanged.
pub type Rejection = Box<dyn std::error::Error + Send + Sync>;

/// An error of a store. The texts are kube-apiserver's where clients see them.
///
/// Every variant is another answer to a client, so a new one is a break: who matches them has to decide.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// There is no such object. Retrying does not help.
    #[error(
        "StorageError: key not found, Code: 1, Key: {key}, ResourceVersion: {revision}, AdditionalErrorMsg: "
    )]
    KeyNotFound {
        /// The requested key.
        key: String,
        /// The revision at which it was looked up; 0 if unknown.
        revision: u64,
    },
    /// There is such an object already. Choose another name, or update.
    #[error(
        "StorageError: key exists, Code: 2, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
    )]
    KeyExists {
        /// The key that was to be created.
        key: String,
    },
    /// Another writer changed the object meanwhile. Read it again and retry.
    #[error(
        "StorageError: resource version conflicts, Code: 3, Key: {key}, ResourceVersion: {revision}, AdditionalErrorMsg: "
    )]
    Conflict {
        /// The key that was to be written.
        key: String,
        /// The revision that was expected.
        revision: u64,
    },
    /// A precondition does not hold. Read again and decide anew.
    #[error(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {message}"
    )]
    InvalidObject {
        /// The full key of the object.
        key: String,
        /// The precondition that failed, and the value that was found.
        message: String,
    },
    /// The object to create has a resource version. Remove it.
    #[error("resourceVersion should not be set on objects to be created")]
    VersionOnCreate,
    /// The store has not reached the version, not even within the time allowed. Retry later.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLargeResourceVersion {
        /// The requested version.
        requested: u64,
        /// The newest revision.
        current: u64,
        /// The retry delay in seconds; 0 leaves it to the client.
        retry_after_seconds: u32,
    },
    /// The watch's version has left the window of the cache. List again.
    #[error("too old resource version: {requested} ({oldest})")]
    TooOld {
        /// The requested version.
        requested: u64,
        /// The oldest version that a watch can begin after.
        oldest: u64,
    },
    /// The version has been compacted away. List again.
    #[error("The resourceVersion for the provided watch is too old.")]
    WatchExpired,
    /// The version of an exact list has been compacted away. List again.
    #[error("The resourceVersion for the provided list is too old.")]
    ListExpired,
    /// The version of a continued list has been compacted away. List again, or continue with `token`.
    #[error(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )]
    ContinueExpired {
        /// A token that continues with the newest state.
        token: String,
    },
    /// The continue token cannot be used.
    #[error("invalid continue token: {0}")]
    InvalidContinue(#[from] ContinueTokenError),
    /// The request has both a continue token and a resource version.
    #[error("specifying resource version is not allowed when using continue")]
    ContinueWithVersion,
    /// A resource version of the request that is not valid.
    #[error("{0}")]
    InvalidResourceVersion(#[from] InvalidResourceVersion),
    /// A key of the request that is not valid.
    #[error("{0}")]
    InvalidKey(#[from] InvalidKey),
    /// A stored value is not an object. It stays until it is deleted with
    /// `ignoreStoreReadErrorWithClusterBreakingPotential`.
    #[error("{}", corrupt_message(.keys))]
    Corrupt {
        /// The full keys, and the error of each.
        keys: Vec<(String, String)>,
    },
    /// The cache or the store is not ready. Retry after a while.
    #[error("storage is (re)initializing{}", .reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default())]
    NotReady {
        /// The reason for people, if known.
        reason: Option<String>,
        /// The retry delay in seconds.
        retry_after_seconds: u32,
    },
    /// The store cannot be reached. Retry.
    #[error("{message}")]
    Unreachable {
        /// The error of the transport.
        message: String,
    },
    /// The store did not answer in time. The write may or may not have happened.
    #[error("{message}")]
    Timeout {
        /// The error of the transport.
        message: String,
    },
    /// The store's quota is reached. Delete something, or have the operator raise the quota.
    #[error("{message}")]
    NoSpace {
        /// The text of the store.
        message: String,
    },
    /// The request is larger than the store takes. Write less.
    #[error("{message}")]
    TooLarge {
        /// The text of the store.
        message: String,
    },
    /// There is no memory for the objects of the list. Retry later, or list fewer at a time.
    #[error("{0}")]
    OutOfMemory(#[from] Exceeded),
    /// A function of a higher layer refused; the error is that layer's own.
    #[error("{0}")]
    Rejected(Rejection),
    /// Any other error of the store.
    #[error("{message}")]
    Internal {
        /// The text of the error.
        message: String,
    },
    /// An error that several waiting callers share.
    #[error("{0}")]
    Shared(Arc<Self>),
}

impl StorageError {
    /// Returns true if there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::KeyNotFound { .. })
    }

    /// Returns true if there can be no object: none is stored, or the key is invalid. For names that users write into
    /// objects.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.is_not_found() || matches!(self, Self::InvalidKey(_))
    }
}

/// Returns the message about a stored value that is not an object.
#[must_use]
pub fn corrupt_object(key: &str, why: &str) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: {why}"
    )
}

fn corrupt_message(keys: &[(String, String)]) -> String {
    let texts: Vec<String> = keys
        .iter()
        .map(|(key, why)| corrupt_object(key, why))
        .collect();
    if let [text] = texts.as_slice() {
        return text.clone();
    }
    let count = texts.len();
    format!(
        "unable to transform or decode {count} objects: {{\n\t{}\n}}",
        texts.join("\n\t")
    )
}
