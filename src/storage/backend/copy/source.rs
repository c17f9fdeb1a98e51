//! The store that is copied.

use async_trait::async_trait;

use super::error::CopyError;
use super::pages::Pages;
use crate::storage::backend::{BackendError, LeaseId};

/// A store that is copied. It is read at the revisions that [`CopySource::newest`] returns.
#[async_trait]
pub trait CopySource: Pages {
    /// Returns the name by which an unfinished copy knows its source.
    fn name(&self) -> &str;

    /// Returns the newest revision.
    ///
    /// # Errors
    /// [`CopyError::Source`], or [`CopyError::Unfinished`] if the store is an unfinished copy itself.
    async fn newest(&self) -> Result<u64, CopyError>;

    /// Returns the number of keys at a revision.
    ///
    /// # Errors
    /// Those of [`crate::storage::backend::Backend::range`].
    async fn keys(&self, revision: u64) -> Result<u64, BackendError>;

    /// Returns the seconds that a lease has left, or its whole time if it is not known since when it lives; `None` if
    /// it has ended.
    ///
    /// # Errors
    /// Transport errors.
    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError>;
}
