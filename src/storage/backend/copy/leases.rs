//! Leases whose numbers are chosen by the caller.

use async_trait::async_trait;

use crate::storage::backend::{Backend, BackendError, LeaseId};

/// A backend that tells the time of a lease, and grants one of a given number.
#[async_trait]
pub trait NumberedLeases: Backend {
    /// Returns the seconds that a lease has left; `None` if there is no such lease.
    ///
    /// # Errors
    /// Transport errors.
    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError>;

    /// Grants a lease of this number for `ttl_seconds`. Does nothing if it is there.
    ///
    /// # Errors
    /// Transport errors.
    async fn grant_numbered(&self, lease: LeaseId, ttl_seconds: i64) -> Result<(), BackendError>;
}
