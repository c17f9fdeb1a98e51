//! A backend as a source: other programs may write to it meanwhile.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::CopyError;
use super::leases::NumberedLeases;
use super::marker::{MARKER_KEY, Marker};
use super::pages::{KeyPage, Pages, count, page_of};
use super::source::CopySource;
use crate::storage::backend::{BackendError, LeaseId, RangeRequest};

/// A backend that is copied.
#[derive(Debug)]
pub struct BackendSource {
    name: String,
    backend: Arc<dyn NumberedLeases>,
}

impl BackendSource {
    /// Creates a source; the name is the one by which an unfinished copy knows it.
    #[must_use]
    pub fn new(name: String, backend: Arc<dyn NumberedLeases>) -> Self {
        Self { name, backend }
    }
}

#[async_trait]
impl Pages for BackendSource {
    async fn page(&self, after: &str, limit: u64, revision: u64) -> Result<KeyPage, BackendError> {
        page_of(&*self.backend, after, limit, revision).await
    }
}

#[async_trait]
impl CopySource for BackendSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn newest(&self) -> Result<u64, CopyError> {
        let read = self.backend.range(RangeRequest::key(MARKER_KEY)).await;
        let read = read.map_err(CopyError::Source)?;
        match read.kvs.first() {
            None => Ok(read.revision),
            Some(marker) => Err(CopyError::Unfinished {
                found: Marker::named(&marker.value),
            }),
        }
    }

    async fn keys(&self, revision: u64) -> Result<u64, BackendError> {
        count(&*self.backend, revision).await
    }

    async fn time_to_live(&self, lease: LeaseId) -> Result<Option<i64>, BackendError> {
        self.backend.time_to_live(lease).await
    }
}
