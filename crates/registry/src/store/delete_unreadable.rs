//! Deletes an object whose stored bytes cannot be decoded (KEP-3926).
//!
//! Such a deletion runs no preconditions, finalizers, admission or hooks. So it is refused if the object can be read.

use ringwatch::storage::{DeleteOptions, GetOptions, NoCheck, StorageError};
use ringwatch_apimachinery::{Error, FieldError};

use super::request_error::{StoreOperation, to_request_error};
use super::{DeletionResult, Store};
use crate::IGNORE_STORE_READ_ERROR;

impl Store {
    /// Deletes an object that cannot be read.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one that can be read, or is not there.
    pub(super) async fn delete_unreadable(
        &self,
        key: &str,
        name: &str,
    ) -> Result<DeletionResult, Error> {
        let found = self.storage.get(key, GetOptions::default()).await;
        if !matches!(found, Err(StorageError::Corrupt { .. })) {
            return Err(self.readable(name));
        }
        tracing::warn!(key, "an object that cannot be read is deleted unsafely");
        let options = DeleteOptions {
            expect_decode_error: true,
            ..DeleteOptions::default()
        };
        let deleted = self.storage.delete(key, options, &mut NoCheck).await;
        match deleted {
            Ok(object) => Ok(DeletionResult {
                object,
                finished: true,
                returns_object: false,
            }),
            // Another client has repaired it meanwhile.
            Err(StorageError::InvalidObject { .. }) => Err(self.readable(name)),
            Err(error) => Err(to_request_error(
                error,
                StoreOperation::Delete,
                &self.resource,
                name,
            )),
        }
    }

    fn readable(&self, name: &str) -> Error {
        let why = "is exclusively used to delete corrupt object(s), try again by removing this \
                   option";
        Error::Invalid {
            kind: self.resource.qualified_name(),
            name: name.to_owned(),
            errors: vec![FieldError::invalid(
                IGNORE_STORE_READ_ERROR,
                &true.into(),
                why,
            )],
        }
    }
}
