//! The reasons why a copy stops.

use crate::storage::backend::BackendError;

/// The failure of a copy, as one line that says what to do. Whatever is copied stays, and the same copy goes on with
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The source cannot be read.
    #[error(
        "the source cannot be read: {0}; mend that and run the same command again, which goes on from here"
    )]
    Source(BackendError),
    /// The target cannot be read or written.
    #[error(
        "the target cannot be used: {0}; mend that and run the same command again, which goes on from here"
    )]
    Target(BackendError),
    /// A key cannot be written.
    #[error(
        "{key} cannot be written to the target: {source}; raise the limits of the target and run the same command again"
    )]
    Write {
        /// The key.
        key: String,
        /// The error of the target.
        source: BackendError,
    },
    /// The target has keys, and is not an unfinished copy.
    #[error(
        "the target has {keys} keys already and is not an unfinished copy; if a copy was just interrupted it may be whole: compare with the KEYS of `ringwatch store status`; otherwise copy into an empty store, or remove the keys if nothing needs them"
    )]
    NotEmpty {
        /// The number of its keys.
        keys: u64,
    },
    /// The target is an unfinished copy of another source.
    #[error(
        "the target is an unfinished copy of {found}; name that as the source, or begin with an empty target"
    )]
    OtherSource {
        /// The name of the source that the target has.
        found: String,
    },
    /// The source is an unfinished copy.
    #[error("the source is an unfinished copy of {found}; finish that copy first")]
    Unfinished {
        /// The source of that copy.
        found: String,
    },
    /// The source has an older revision than an earlier pass has copied.
    #[error(
        "the source is at revision {revision}, and revision {copied} was copied from it before: it was restored from a backup, or is another store; begin with an empty target"
    )]
    WentBack {
        /// The newest revision of the source.
        revision: u64,
        /// The newest revision that was copied.
        copied: u64,
    },
    /// The source was written to in every pass.
    #[error(
        "the source was written to in each of {passes} passes; stop all servers on it and run the same command again, or leave it unfinished with --prepare"
    )]
    SourceWritten {
        /// The number of passes.
        passes: usize,
    },
    /// Somebody else writes to the target, or another run of the copy has begun or finished.
    #[error(
        "{key} was changed in the target by another program or run of this command; stop what uses the target, and run the same command again"
    )]
    TargetWritten {
        /// The key.
        key: String,
    },
    /// A key of the source is no text.
    #[error(
        "the source has the key {key:?}, which is no text; only stores of Kubernetes objects can be copied"
    )]
    NotText {
        /// The key, with a sign in the place of what is no text.
        key: String,
    },
    /// Two keys of the source were written at one revision, which a target that keeps revisions cannot have.
    #[error(
        "{first} and {second} were written in one transaction, revision {revision}, which no API server does; write one of them anew and run the same command again"
    )]
    SharedRevision {
        /// A key.
        first: String,
        /// The other.
        second: String,
        /// Their revision.
        revision: u64,
    },
    /// The target does not have what the source has.
    #[error(
        "{what} differs in the target from the source; run the same command again, which copies it anew; if it differs again, something else writes to the target or it is damaged"
    )]
    Differs {
        /// The thing that differs: a key, or the digest.
        what: String,
    },
    /// The target's revision is not past the source's.
    #[error(
        "the target is at revision {revision} and must reach {needed}; it went back during the copy: begin with an empty target"
    )]
    Behind {
        /// The target's revision.
        revision: u64,
        /// The least that it has to be.
        needed: u64,
    },
}

impl CopyError {
    /// Returns true if the source dropped the revision that was being read, so that a pass at a newer one can succeed.
    pub(super) fn is_compacted_source(&self) -> bool {
        matches!(self, Self::Source(BackendError::Compacted { .. }))
    }
}
