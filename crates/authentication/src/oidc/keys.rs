//! Fetches a provider's discovery document and its keys.

use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// The most keys of a provider that are read.
const KEYS_MAX: usize = 100;

/// The reason why a token of a provider is invalid, or its documents cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The keys of the provider have not been fetched yet.
    #[error("authenticator not initialized")]
    NoKeys,
    /// The provider's documents are invalid.
    #[error("{0}")]
    Provider(String),
    /// None of the provider's keys has signed the token.
    #[error("verify token: failed to verify signature")]
    Signature,
    /// The token is for other audiences.
    #[error("verify token: oidc: expected audience in {wanted:?} got {token:?}")]
    Audience {
        /// The audiences that are accepted.
        wanted: Vec<String>,
        /// The audiences of the token.
        token: Vec<String>,
    },
    /// The token has expired, or is not valid yet.
    #[error("verify token: oidc: {0}")]
    Untimely(&'static str),
    /// A claim is missing, or is not what it should be.
    #[error("parse {what} claim {name:?}: {why}")]
    Claim {
        /// The purpose of the claim.
        what: &'static str,
        /// The name of the claim.
        name: String,
        /// The reason why it cannot be used.
        why: &'static str,
    },
    /// An expression over the claims has no usable value.
    #[error("error evaluating {what} claim expression: {why}")]
    Expression {
        /// The purpose of the claim.
        what: &'static str,
        /// The error of the expression.
        why: String,
    },
    /// A validation rule is violated.
    #[error("{0}")]
    Rule(String),
}

/// The keys of a provider.
#[derive(Clone, Debug, Default)]
pub struct ProviderKeys(Vec<Jwk>);

impl ProviderKeys {
    /// Returns the URL of the issuer's keys (`jwks_uri`), from its discovery document.
    ///
    /// # Errors
    /// [`OidcError::Provider`] if it says that it is another.
    pub fn place(configuration: &[u8], issuer: &str) -> Result<String, OidcError> {
        #[derive(Deserialize)]
        struct Configuration {
            issuer: String,
            jwks_uri: String,
        }
        let read: Configuration = serde_json::from_slice(configuration).map_err(|error| {
            OidcError::Provider(format!(
                "failed to decode provider discovery object: {error}"
            ))
        })?;
        if read.issuer == issuer {
            return Ok(read.jwks_uri);
        }
        Err(OidcError::Provider(format!(
            "issuer did not match the issuer returned by provider, expected {issuer:?} got {:?}",
            read.issuer
        )))
    }

    /// Reads a JSON Web Key Set. Keys of types that are not known here are left out.
    ///
    /// # Errors
    /// [`OidcError::Provider`] if it is none.
    pub fn read(set: &[u8]) -> Result<Self, OidcError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(set)
            .map_err(|error| OidcError::Provider(format!("failed to decode keys: {error}")))?;
        let keys = set.keys.into_iter().take(KEYS_MAX);
        let known = keys.filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let signing = known.filter(|key| {
            let purpose = key.common.public_key_use.as_ref();
            purpose.is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
        });
        Ok(Self(signing.collect()))
    }

    /// Returns the keys that may have signed a token: the one that it names, or all if it names none. A shared secret
    /// is no key.
    pub(super) fn named(&self, id: &str, algorithm: Algorithm) -> Vec<DecodingKey> {
        let named = self
            .0
            .iter()
            .filter(|key| id.is_empty() || key.common.key_id.as_deref() == Some(id));
        let keys = named.filter_map(|key| DecodingKey::from_jwk(key).ok());
        keys.filter(|key| key.family() == algorithm.family())
            .collect()
    }
}
