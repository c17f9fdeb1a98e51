//! Updates by a function of the object.

use async_trait::async_trait;
use ringwatch_apimachinery::Error;
use serde_json::Value;

use super::{RequestContext, UpdatedObject};

/// An update by a function that changes the object, which is null if there is none.
#[derive(Debug)]
pub struct FunctionUpdate<F>(F);

impl<F: FnMut(&mut Value) -> Result<(), Error> + Send> FunctionUpdate<F> {
    /// Makes the update by a function, which is called again when another writer changed the object meanwhile.
    pub fn new(change: F) -> Self {
        Self(change)
    }
}

#[async_trait]
impl<F: FnMut(&mut Value) -> Result<(), Error> + Send> UpdatedObject for FunctionUpdate<F> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let mut object = existing.cloned().unwrap_or_default();
        (self.0)(&mut object)?;
        Ok(object)
    }
}
