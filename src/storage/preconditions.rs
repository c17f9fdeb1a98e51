//! Conditions that an object must meet to be changed.

use super::StorageError;
use crate::meta::Object;

/// Conditions on the current content of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The object's uid.
    pub uid: Option<String>,
    /// The object's resource version.
    pub resource_version: Option<String>,
}

impl Preconditions {
    /// Checks the conditions against an object.
    ///
    /// # Errors
    /// [`StorageError::InvalidObject`] in kube-apiserver's words, which reach clients.
    pub fn check(&self, key: &str, object: &Object) -> Result<(), StorageError> {
        self.compare(key, object.uid(), &object.revision().to_string())
    }

    /// Checks the conditions where there is no object: any of them fails.
    ///
    /// # Errors
    /// As [`Preconditions::check`].
    pub fn check_absent(&self, key: &str) -> Result<(), StorageError> {
        self.compare(key, "", "")
    }

    fn compare(&self, key: &str, uid: &str, version: &str) -> Result<(), StorageError> {
        let failed = |what: &str, wanted: &str, found: &str| StorageError::InvalidObject {
            key: key.to_owned(),
            message: format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            ),
        };
        if let Some(wanted) = self.uid.as_deref().filter(|it| *it != uid) {
            return Err(failed("UID", wanted, uid));
        }
        if let Some(wanted) = self.resource_version.as_deref().filter(|it| *it != version) {
            return Err(failed("ResourceVersion", wanted, version));
        }
        Ok(())
    }

    /// Returns true if there is nothing to check.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.uid.is_none() && self.resource_version.is_none()
    }
}
