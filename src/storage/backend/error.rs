//! The errors of backends.

/// An error of a backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The revision is compacted away. Read at a newer one.
    #[error("required revision has been compacted")]
    Compacted {
        /// The oldest revision that can be read; 0 if unknown.
        compact_revision: u64,
    },
    /// The revision does not exist yet. Retry later.
    #[error("required revision is a future revision")]
    FutureRevision {
        /// The newest revision; 0 if unknown.
        current: u64,
    },
    /// The lease is gone. Grant another one.
    #[error("requested lease not found")]
    LeaseNotFound,
    /// The request is larger than the store takes. Write less.
    #[error("{0}")]
    TooLarge(String),
    /// The store cannot be reached. Retry; a write did not happen or may have.
    #[error("{0}")]
    Unavailable(String),
    /// The store did not respond in time. A write may have happened.
    #[error("{0}")]
    Timeout(String),
    /// The store accepts no writes: its disk is full or broken. Retry when that is repaired; a write may or may not
    /// have happened.
    #[error("{0}")]
    ReadOnly(String),
    /// The store's quota is reached: it accepts only deletions. Delete something, or raise the quota. The text is
    /// etcd's.
    #[error("etcdserver: mvcc: database space exceeded")]
    NoSpace,
    /// The data is not what this program wrote. Restore it from a backup.
    #[error("{0}")]
    Corrupt(String),
    /// Any other failure of the backend.
    #[error("{0}")]
    Other(String),
}
