//! From a key-value of the backend to an object.

use crate::meta::Object;
use crate::storage::backend::KeyValue;
use crate::storage::{CORRUPT_KEYS_MAX, StorageError, Versioner};

/// The object that a key-value holds, at the revision that wrote it.
///
/// # Errors
/// [`StorageError::Corrupt`] when the value is not an object.
pub(super) fn decode(versioner: &Versioner, kv: &KeyValue) -> Result<Object, StorageError> {
    versioner
        .update_object(&kv.value, kv.mod_revision)
        .map_err(|error| {
            let revision = kv.mod_revision;
            let why = format!("object not decodable revision={revision}: {error}");
            let keys = vec![(kv.key.clone(), why)];
            StorageError::Corrupt { keys }
        })
}

/// What cannot be decoded in a list: collected, so that one answer names it all.
#[derive(Debug, Default)]
pub(super) struct CorruptKeys {
    keys: Vec<(String, String)>,
}

impl CorruptKeys {
    /// Notes an error; the flag says whether there is room for more. The last one tells that there are
    /// more than an answer names.
    ///
    /// # Errors
    /// The error itself when it does not speak of corrupt values.
    pub(super) fn note(&mut self, error: StorageError) -> Result<bool, StorageError> {
        let StorageError::Corrupt { keys } = error else {
            return Err(error);
        };
        self.keys.extend(keys);
        Ok(self.keys.len() <= CORRUPT_KEYS_MAX)
    }

    /// Nothing, if nothing was noted.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] with all that was noted.
    pub(super) fn finish(self) -> Result<(), StorageError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        Err(StorageError::Corrupt { keys: self.keys })
    }
}
