//! Leases of numbers that the caller chooses.

use async_trait::async_trait;
use etcd_client::LeaseGrantOptions;

use super::cluster::{Effect, Etcd};
use crate::storage::backend::copy::NumberedLeases;
use crate::storage::backend::{BackendError, LeaseId};

/// The error of etcd to the grant of a lease that is there.
const LEASE_EXISTS: &str = "lease already exists";

#[async_trait]
impl NumberedLeases for Etcd {
    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError> {
        let response = self
            .call(Effect::Repeatable, |endpoint| {
                let mut leases = endpoint.lease();
                async move { leases.time_to_live(lease.0, None).await }
            })
            .await?;
        // -1 for a lease that is not there.
        Ok(Some(response.ttl()).filter(|seconds| *seconds >= 0))
    }

    async fn grant_numbered(&self, lease: LeaseId, ttl_seconds: i64) -> Result<(), BackendError> {
        let granted = self
            .call(Effect::Repeatable, |endpoint| {
                let mut leases = endpoint.lease();
                let options = LeaseGrantOptions::new().with_id(lease.0);
                async move { leases.grant(ttl_seconds, Some(options)).await }
            })
            .await;
        match granted {
            Err(BackendError::Other(text)) if text.contains(LEASE_EXISTS) => Ok(()),
            granted => granted.map(drop),
        }
    }
}
