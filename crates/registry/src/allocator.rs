//! Allocates values that only one object of a type can have, such as the cluster IP of a Service.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch_apimachinery::Error;
use serde_json::Value;

/// Allocates values of which each belongs to one object of a type: `BeginCreate`, `BeginUpdate` and `AfterDelete` of
/// Kubernetes' generic store.
#[async_trait]
pub trait Allocator: Debug + Send + Sync {
    /// Allocates what a new or changed object needs and writes it into the object, which is validated afterwards. A dry
    /// run records nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] when another object has what this one asks for, or its wishes contradict each other,
    /// [`Error::Internal`] when there is nothing left, or an error of the store in which allocations are recorded.
    async fn allocate(
        self: Arc<Self>,
        object: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Box<dyn Allocation>, Error>;

    /// Releases the values of an object that is no longer stored. Must be called once for each object, by the code that
    /// removed it from the store, since another object may get the same values soon.
    async fn release(&self, object: &Value);
}

/// The values that one write allocates and frees; final once the outcome of the write is known.
#[async_trait]
pub trait Allocation: Debug + Send {
    /// Releases the values that are not in use after the write: those it gave up, or, if it failed, those it took.
    async fn finish(self: Box<Self>, outcome: WriteResult);
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// The object with the allocation is stored.
    Written,
    /// The object is not stored with the allocation, and never will be.
    NotWritten,
    /// The outcome of the write is not known.
    Unknown,
}
