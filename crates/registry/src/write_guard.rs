//! A check of the permissions that a write grants to others, such as by a Role, beyond the permission for the write
//! itself.

use std::fmt;

use async_trait::async_trait;
use ringwatch_apimachinery::Error;
use serde_json::Value;

use super::Request;

/// A check of a write.
#[async_trait]
pub trait WriteGuard: fmt::Debug + Send + Sync {
    /// Checks an object that is about to be written. The request has the old one, if there is one.
    ///
    /// # Errors
    /// The refusal of the write, [`Error::Forbidden`] as a rule.
    async fn check(&self, request: &Request<'_>, object: &Value) -> Result<(), Error>;
}
