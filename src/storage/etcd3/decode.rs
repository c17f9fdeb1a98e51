//! Decoding of key-values of the backend into objects, and encoding of values.

use bytes::Bytes;

use crate::meta::Object;
use crate::storage::backend::KeyValue;
use crate::storage::encryption::{Reader, TransformError, Transformer};
use crate::storage::{CORRUPT_KEYS_MAX, StorageError, Versioner};

/// The decoding and encoding of a type's values.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    /// The conversion between plain values and objects.
    pub(super) versioner: Versioner,
    /// The encryption and decryption of values.
    pub(super) transformer: Transformer,
}

/// A decrypted value.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    /// The object in its stored form.
    pub(super) bytes: Bytes,
    /// True if it would be encrypted with another provider or key today.
    pub(super) stale: bool,
}

/// The decryption and decoding of values that have been read from the backend.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueReader {
    versioner: Versioner,
    decryption: Reader,
}

impl Values {
    /// Returns the decoding of these key-values. The keys with which they are encrypted are known to it.
    pub(super) fn reader<'a>(
        &self,
        kvs: impl IntoIterator<Item = &'a KeyValue>,
    ) -> impl Future<Output = ValueReader> + Send + 'static {
        let versioner = self.versioner.clone();
        let decryption = self.transformer.reader(kvs.into_iter().map(|kv| &kv.value));
        async {
            ValueReader {
                versioner,
                decryption: decryption.await,
            }
        }
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

impl ValueReader {
    /// Decrypts and decodes the object of a key-value, at the revision that wrote it.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the value cannot be decrypted or is not an object.
    pub(super) fn decode(&self, kv: &KeyValue) -> Result<Object, StorageError> {
        let plain = self.open(kv)?;
        self.read(kv, &plain)
    }

    /// Decrypts the value of a key-value.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it cannot be decrypted; [`StorageError::Internal`] when it cannot be now.
    pub(super) fn open(&self, kv: &KeyValue) -> Result<Plain, StorageError> {
        let opened = self.decryption.open(&kv.value, &kv.key);
        let (bytes, stale) = opened.map_err(|error| {
            let why = format!("data from the storage is not transformable revision=0: {error}");
            match error {
                TransformError::Unreadable(_) => corrupt(kv, why),
                TransformError::Unavailable(_) => StorageError::Internal { message: why },
            }
        })?;
        Ok(Plain { bytes, stale })
    }

    /// Decodes the object of a key-value from its decrypted value.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is not an object.
    pub(super) fn read(&self, kv: &KeyValue, plain: &Plain) -> Result<Object, StorageError> {
        let revision = kv.mod_revision;
        let read = self.versioner.update_object(plain.bytes.clone(), revision);
        read.map_err(|error| {
            let why = format!("object not decodable revision={revision}: {error}");
            corrupt(kv, why)
        })
    }
}

fn corrupt(kv: &KeyValue, why: String) -> StorageError {
    let keys = vec![(kv.key.clone(), why)];
    StorageError::Corrupt { keys }
}

/// The keys of a list that cannot be decoded, collected so that one error names them all.
#[derive(Debug, Default)]
pub(super) struct CorruptKeys {
    keys: Vec<(String, String)>,
}

impl CorruptKeys {
    /// Records the keys of an error; false if no more can be recorded. The last key recorded says that there are more
    /// than an error names.
    ///
    /// # Errors
    /// The error itself when it is not about corrupt values.
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

    /// Returns the keys and their errors.
    pub(super) fn into_keys(self) -> Vec<(String, String)> {
        self.keys
    }

    /// Succeeds if nothing was recorded.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] with everything that was recorded.
    pub(super) fn finish(self) -> Result<(), StorageError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        Err(StorageError::Corrupt { keys: self.keys })
    }
}
