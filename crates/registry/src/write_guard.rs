//! A check of the permissions that a write grants to others, such as by a Role, beyond the permission for the write
//! itself.

use std::fmt;

use async_trait::async_trait;
use ringwatch_apimachinery::{Error, FieldError};
use serde_json::Value;

use super::Request;

/// A check of a write.
#[async_trait]
pub trait WriteGuard: fmt::Debug + Send + Sync {
    /// Checks an object that is about to be written, before its strategy looks at it. The request has the old one, if
    /// there is one. Without an implementation nothing is refused.
    ///
    /// # Errors
    /// The refusal of the write, [`Error::Forbidden`] as a rule.
    async fn check(&self, _request: &Request<'_>, _object: &Value) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the errors about permissions that are told with those of the strategy's validation, and before them:
    /// none without an implementation.
    ///
    /// # Errors
    /// An error of the store, if it fails to read the objects that say what the user may do.
    async fn wrong_fields(
        &self,
        _request: &Request<'_>,
        _object: &Value,
    ) -> Result<Vec<FieldError>, Error> {
        Ok(Vec::new())
    }

    /// Checks an object in which validation has found nothing wrong. Without an implementation nothing is refused.
    ///
    /// # Errors
    /// The refusal of the write.
    async fn check_valid(&self, _request: &Request<'_>, _object: &Value) -> Result<(), Error> {
        Ok(())
    }
}
