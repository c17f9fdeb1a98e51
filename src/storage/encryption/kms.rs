//! Encryption with keys of a KMS plugin, version 2 of its interface: a process on this machine that is asked over gRPC
//! on a Unix socket.
//!
//! ```text
//!   seed, made here --Encrypt--> encrypted seed, stored with each value      (once for a key of the plugin)
//!   HKDF(seed, 32 random bytes) --> key of AES-GCM, used for one value
//!   encrypted seed, read with a value --Decrypt--> seed, remembered          (once for each that is met)
//! ```
//!
//! The plugin is asked for its status each minute. While it answers with the identifier of the same key, the seed is
//! used on; when the identifier changes there is a new seed. A seed that has not been confirmed for three minutes
//! encrypts nothing more: writes fail, rather than to be stored with a key that may have been withdrawn. Reads go on.
//!
//! Values are decrypted where nobody can wait. So whoever reads values from the store first has the unknown seeds
//! fetched ([`KmsProvider::fetch_seeds`]).
//!
//! Ported from `staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2` and
//! `pkg/server/options/encryptionconfig/config.go` (`kmsv2PluginProbe`), Kubernetes 1.36.

mod client;
mod config;
mod data_key;
mod decryption;
mod envelope;
mod messages;
mod provider;
mod seeds;
#[cfg(test)]
mod tests;

pub(super) use config::KmsConfig;
pub(super) use provider::{KmsProvider, OpenError};
