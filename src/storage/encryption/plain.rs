//! The encryption of a build without the feature `encryption`: there is none.
//!
//! Values pass as they are. One that is encrypted is refused, so that it is never taken for an object.

use std::future::ready;

use bytes::Bytes;

use super::stored_value::{ENCRYPTED, NO_KEYS, TransformError};

/// The encryption of each type: none.
#[derive(Clone, Debug, Default)]
pub struct Encryption {}

/// The encryption of a type's values: none.
#[derive(Clone, Debug, Default)]
pub struct Transformer {}

/// The decryption of values that have been read: none.
#[derive(Clone, Debug, Default)]
pub struct Reader {}

impl Encryption {
    /// Returns true, since no type is or was encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Returns the transformer of a type's values.
    #[must_use]
    pub fn transformer(&self, _resource: &str, _group: &str) -> Transformer {
        Transformer {}
    }
}

impl Transformer {
    /// Returns a value that is not encrypted, and that it is not stale.
    ///
    /// # Errors
    /// [`TransformError`] when it is encrypted.
    pub fn open(&self, stored: &Bytes, key: &str) -> Result<(Bytes, bool), TransformError> {
        Reader {}.open(stored, key)
    }

    /// Returns the value as it is.
    ///
    /// # Errors
    /// None.
    pub fn seal(&self, plain: Bytes, _key: &str) -> Result<Bytes, TransformError> {
        Ok(plain)
    }

    /// Returns the decryption of these values.
    pub fn reader<'a>(
        &self,
        _stored: impl Iterator<Item = &'a Bytes>,
    ) -> impl Future<Output = Reader> + Send + 'static {
        ready(Reader {})
    }
}

impl Reader {
    /// Returns a value as [`Transformer::open`] does.
    ///
    /// # Errors
    /// [`TransformError`] when it is encrypted.
    pub fn open(&self, stored: &Bytes, _key: &str) -> Result<(Bytes, bool), TransformError> {
        if stored.starts_with(ENCRYPTED) {
            return Err(TransformError::Unreadable(NO_KEYS.to_owned()));
        }
        Ok((stored.clone(), false))
    }
}
