//! Calls the [`Allocator`] of a store around its writes.
//!
//! Allocations are themselves recorded in stores, so these futures are boxed.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use ringwatch::meta::Object;
use ringwatch::storage::StorageError;
use ringwatch_apimachinery::Error;
use serde_json::Value;

use super::Store;
use super::read::tree_of;
use crate::allocator::{Allocation, Allocator, Outcome};

impl Store {
    /// Returns the store with an allocator for values that one object at a time can have, such as cluster IPs.
    #[must_use]
    pub fn with_allocator(self, allocator: Arc<dyn Allocator>) -> Self {
        Self {
            allocator: Some(allocator),
            ..self
        }
    }

    /// Allocates what an object needs, before it is validated. The caller passes the allocation to [`Store::finish_allocation`] after the
    /// write.
    pub(super) fn allocate<'a>(
        &'a self,
        object: &'a mut Value,
        old: Option<&'a Value>,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Allocation>>, Error>> {
        match &self.allocator {
            Some(allocator) => {
                let allocator = Arc::clone(allocator);
                async move { allocator.allocate(object, old, dry_run).await.map(Some) }.boxed()
            }
            None => ready(Ok(None)).boxed(),
        }
    }

    /// Finishes an allocation after the write: releases the values that are not in use by then.
    pub(super) fn finish_allocation(
        allocation: Option<Box<dyn Allocation>>,
        outcome: Outcome,
    ) -> BoxFuture<'static, ()> {
        match allocation {
            Some(allocation) => allocation.finish(outcome).boxed(),
            None => ready(()).boxed(),
        }
    }

    /// Releases the values of an object that has been removed from the storage.
    pub(super) fn release<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, ()> {
        let Some(allocator) = &self.allocator else {
            return ready(()).boxed();
        };
        async move {
            if let Ok(object) = tree_of(object).await {
                allocator.release(&object).await;
            }
        }
        .boxed()
    }
}

/// Returns the outcome of a write by the result of the storage.
pub(super) fn outcome<T>(result: &Result<T, StorageError>) -> Outcome {
    match result {
        Ok(_) => Outcome::Written,
        Err(
            StorageError::Timeout { .. }
            | StorageError::Unreachable { .. }
            | StorageError::Internal { .. },
        ) => Outcome::Unknown,
        Err(_) => Outcome::NotWritten,
    }
}
