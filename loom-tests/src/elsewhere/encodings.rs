//! The encodings that are cached with an object.

use std::convert::Infallible;

use bytes::Bytes;

#[path = "../../../src/meta/encodings.rs"]
#[allow(dead_code, reason = "objects are not cloned here")]
mod included;

pub use included::{EncodedBytes, EncodedObject, EncodingKey};

/// The encodings of one object.
#[derive(Debug, Default)]
pub struct Encodings(included::Encodings);

impl Encodings {
    /// Returns the encoding of a key, made by `make` if it is missing.
    pub fn get_or_make(
        &self,
        key: EncodingKey,
        sum: &EncodedBytes,
        make: impl FnOnce() -> Bytes,
    ) -> EncodedObject {
        let encoded = self.0.get_or_make(key, sum, || Ok::<_, Infallible>(make()));
        encoded.unwrap_or_else(|never| match never {})
    }

    /// Drops the encoding of a key.
    pub fn forget(&self, key: EncodingKey) {
        self.0.forget(key);
    }
}
