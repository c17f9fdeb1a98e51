//! The mark of encrypted values, and the error of those that cannot be read or written.

/// The prefix of every encrypted value.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";

/// The error of an encrypted value of a type that is not encrypted.
pub(super) const NO_KEYS: &str = "identity transformer tried to read encrypted data";

/// An error about a value that cannot be decrypted or encrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// No provider can read the value.
    #[error("{0}")]
    Unreadable(String),
    /// The value cannot be encrypted or decrypted now, since a KMS plugin does not answer. Retry later.
    #[error("{0}")]
    Unavailable(String),
}
