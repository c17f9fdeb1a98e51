//! Service accounts: tokens that say in whose name a program asks.
//!
//! ```text
//!   TokenRequest --TokenIssuer--> token --ServiceAccountTokens--> user
//!                     \ key          public keys /
//!                            discovery: the keys for others
//! ```
//!
//! A token counts as long as the account it was made for is there, and the pod, secret or node that it is bound
//! to; so what was deleted cannot speak any more.

mod claims;
mod discovery;
mod issuer;
mod tokens;

use super::keys::{SigningKey, VerifyingKey};

pub use claims::{Bound, Reference};
pub use discovery::{CONFIGURATION_PATH, KEYS_PATH, KeyDiscovery};
pub use issuer::{Grant, TokenIssuer};
pub use tokens::{AccountStores, ServiceAccountTokens};

/// What tokens of service accounts are made and judged by.
#[derive(Clone, Debug)]
pub struct ServiceAccountConfig {
    /// The names that issuers of tokens may have. New tokens have the first.
    pub issuers: Vec<String>,
    /// For whom tokens are that this server takes.
    pub audiences: Vec<String>,
    /// What signs new tokens.
    pub signing: SigningKey,
    /// What tokens may be signed with beside that.
    pub others: Vec<VerifyingKey>,
    /// For how many seconds a token is good at most.
    pub seconds_max: Option<i64>,
    /// Whether tokens that are mounted into pods are good for longer than was asked for.
    pub extends_mounted: bool,
    /// Where others find the keys, if not here.
    pub keys_uri: Option<String>,
}

impl ServiceAccountConfig {
    /// All keys that a token may be signed with, each once.
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
