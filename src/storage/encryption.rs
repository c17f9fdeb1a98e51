//! Encryption at rest: values are encrypted on their way into the store and decrypted on the way out.
//!
//! ```text
//! k8s:enc:aesgcm:v1:key1:    12 bytes of nonce, ciphertext, 16 bytes of tag
//! k8s:enc:aescbc:v1:key1:    16 bytes of initialization vector, ciphertext with padding
//! k8s:enc:secretbox:v1:key1: 24 bytes of nonce, 16 bytes of tag, ciphertext
//! k8s:enc:kms:v2:plugin1:    a protobuf message with the encrypted seed of the key, and the ciphertext
//! ```
//!
//! A stored value names its provider and its key, so that keys and providers can be replaced while old values are still
//! read ([`Transformer`]). A file configures the encryption of each type ([`EncryptionConfig`]), also while it is in
//! use ([`Encryption`]). The hard part is that no encrypted value may pass for a plain one: a value that no key
//! decrypts is an error, and one with the prefix of encrypted values is never taken for an object.
//!
//! Without the feature `encryption` nothing is encrypted ([`Transformer`] passes values on), and that rule alone holds.

#[cfg(feature = "encryption")]
mod cipher;
#[cfg(feature = "encryption")]
mod config;
#[cfg(feature = "encryption")]
mod current;
#[cfg(feature = "encryption")]
mod kms;
#[cfg(not(feature = "encryption"))]
mod plain;
#[cfg(feature = "encryption")]
mod providers;
mod stored_value;

#[cfg(feature = "encryption")]
pub use config::{EncryptionConfig, EncryptionConfigError};
#[cfg(feature = "encryption")]
pub use current::{Encryption, Reader, Transformer};
#[cfg(not(feature = "encryption"))]
pub use plain::{Encryption, Reader, Transformer};
pub use stored_value::{ENCRYPTED, TransformError};
