//! Tokens of service accounts: issues, authenticates and publishes the keys of them.
//!
//! ```text
//!   TokenRequest --TokenIssuer--> token --ServiceAccountTokens--> user
//!                     \ key          public keys /
//!                            discovery: the keys for others
//! ```
//!
//! A token is valid as long as the account it was issued for exists, and the pod, secret or node that it is bound to.
//! Older ones lie in Secrets and do not expire.

mod account_stores;
mod claims;
mod discovery;
mod issuer;
mod last_use;
mod legacy;
mod tokens;

use super::keys::{SigningKey, VerifyingKey};

pub use account_stores::AccountStores;
pub use claims::{BoundObject, Reference};
pub use discovery::{CONFIGURATION_PATH, KEYS_PATH, KeyDiscovery};
pub use issuer::{Grant, TokenIssuer};
pub use tokens::ServiceAccountTokens;

/// The settings by which service account tokens are issued and verified.
#[derive(Clone, Debug)]
pub struct ServiceAccountConfig {
    /// The names that issuers of tokens may have. New tokens have the first.
    pub issuers: Vec<String>,
    /// The audiences of tokens that this server accepts.
    pub audiences: Vec<String>,
    /// The key that signs new tokens.
    pub signing: SigningKey,
    /// Further keys whose tokens are accepted.
    pub others: Vec<VerifyingKey>,
    /// The longest lifetime of a token, in seconds; `None` for no limit.
    pub seconds_max: Option<i64>,
    /// True if tokens of Secrets are valid only as long as the Secret and the account exist.
    pub lookup: bool,
    /// True if tokens that are mounted into pods are valid for longer than requested.
    pub extends_mounted: bool,
    /// The URL of the JSON Web Key Set, if it is not this server's.
    pub keys_uri: Option<String>,
}

impl ServiceAccountConfig {
    /// Returns all keys that a token may be signed with, each once.
    fn keys(&self) -> Vec<VerifyingKey> {
        let mut keys = vec![self.signing.public.clone()];
        for other in &self.others {
            if keys.iter().all(|key| key.id != other.id) {
                keys.push(other.clone());
            }
        }
        keys
    }
}
