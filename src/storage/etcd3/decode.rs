//! From a key-value of the backend to an object, and the way back to a value.

use bytes::Bytes;

use crate::meta::Object;
use crate::storage::backend::KeyValue;
use crate::storage::encryption::Transformer;
use crate::storage::{CORRUPT_KEYS_MAX, StorageError, Versioner};

/// How the values of a type are read and written.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    /// From plain values to objects.
    pub(super) versioner: Versioner,
    /// From stored values to plain ones.
    pub(super) transformer: Transformer,
}

/// A value as it means something.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    /// The object in its stored form.
    pub(super) bytes: Bytes,
    /// True if it would be written in another way today.
    pub(super) stale: bool,
}

impl Values {
    /// The object that a key-value holds, at the revision that wrote it.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the value cannot be decrypted or is not an object.
    pub(super) fn decode(&self, kv: &KeyValue) -> Result<Object, StorageError> {
        let plain = self.open(kv)?;
        self.read(kv, &plain)
    }

    /// The plain value of a key-value.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it cannot be decrypted.
    pub(super) fn open(&self, kv: &KeyValue) -> Result<Plain, StorageError> {
        let opened = self.transformer.open(&kv.value, &kv.key);
        let (bytes, stale) = opened.map_err(|error| {
            corrupt(
                kv,
                format!("data from the storage is not transformable revision=0: {error}"),
            )
        })?;
        Ok(Plain { bytes, stale })
    }

    /// The object of a key-value, of which this is the plain value.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not an object.
    pub(super) fn read(&self, kv: &KeyValue, plain: &Plain) -> Result<Object, StorageError> {
        let revision = kv.mod_revision;
        let read = self.versioner.update_object(&plain.bytes, revision);
        read.map_err(|error| {
            let why = format!("object not decodable revision={revision}: {error}");
            corrupt(kv, why)
        })
    }

    /// Encrypts a plain value for a key.
    ///
    /// # Errors
    /// [`StorageError::Internal`] when it cannot be encrypted.
    pub(super) fn seal(&self, plain: Bytes, key: &str) -> Result<Bytes, StorageError> {
        let sealed = self.transformer.seal(plain, key);
        sealed.map_err(|error| StorageError::Internal {
            message: error.to_string(),
        })
    }
}

fn corrupt(kv: &KeyValue, why: String) -> StorageError {
    let keys = vec![(kv.key.clone(), why)];
    StorageError::Corrupt { keys }
}

/// The keys of a list that cannot be decoded: collected, so that one answer names them all.
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
        if self.has_room() {
            self.keys.extend(keys);
        }
        Ok(self.has_room())
    }

    fn has_room(&self) -> bool {
        self.keys.len() <= CORRUPT_KEYS_MAX
    }

    /// Returns the keys and the reasons.
    pub(super) fn into_keys(self) -> Vec<(String, String)> {
        self.keys
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
