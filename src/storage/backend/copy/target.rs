//! The store that a copy makes.

use async_trait::async_trait;

use super::error::CopyError;
use super::marker::Marker;
use super::pages::Pages;
use super::progress::CopyProgress;
use crate::storage::backend::{BackendError, ContentDigest, KeyValue, LeaseId};

/// A change by which a key of the target becomes as the source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChange {
    /// The key is written.
    Put {
        /// The key as the source has it.
        wanted: KeyValue,
        /// The revision of the key that the target has; 0 for none.
        replaced: u64,
    },
    /// The key, which the source does not have, is removed.
    Remove {
        /// The key.
        key: String,
        /// Its revision in the target.
        revision: u64,
    },
}

/// A store that a copy makes.
///
/// The order of calls is [`CopyTarget::begin`] for each pass, its changes in the order of keys, and at last
/// [`CopyTarget::finish`]. The process may end between any two of them and within each: what is there then is an
/// unfinished copy, with which the next begins.
#[async_trait]
pub trait CopyTarget: Pages {
    /// Returns true if keys have the revisions that they have in the source.
    fn keeps_revisions(&self) -> bool;

    /// Begins a pass at a revision of the source. Afterwards nothing that the target writes has a revision that stands
    /// for something else in the source.
    ///
    /// # Errors
    /// [`CopyError`]: the target is something else than an unfinished copy of this source, or cannot be written.
    async fn begin(&mut self, pass: Marker, progress: &dyn CopyProgress) -> Result<(), CopyError>;

    /// Returns true if a key is in the target as it has to be.
    fn holds(&self, wanted: &KeyValue, found: &KeyValue) -> bool;

    /// Grants a lease for the keys of the changes to come, if it is not there.
    ///
    /// # Errors
    /// [`CopyError::Target`].
    async fn grant(&mut self, lease: LeaseId, ttl_seconds: i64) -> Result<(), CopyError>;

    /// Returns true if a lease is there.
    ///
    /// # Errors
    /// Transport errors.
    async fn has_lease(&self, lease: LeaseId) -> Result<bool, BackendError>;

    /// Makes changes, in whatever order. A key whose lease has ended is left out.
    ///
    /// # Errors
    /// [`CopyError`]; some of them may be made then.
    async fn apply(&mut self, changes: Vec<TargetChange>) -> Result<(), CopyError>;

    /// Finishes the copy, whose content has this digest, and returns its revision.
    ///
    /// # Errors
    /// [`CopyError`]; the copy is unfinished then.
    async fn finish(&mut self, digest: ContentDigest) -> Result<u64, CopyError>;
}
