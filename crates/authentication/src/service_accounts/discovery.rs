//! The OpenID Connect documents by which others verify tokens of this server's service accounts: the issuer, and the
//! public keys.

use http::Uri;
use jsonwebtoken::jwk::JwkSet;
use serde_json::json;

use super::ServiceAccountConfig;

/// The path of the issuer's discovery document.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// The path of the issuer's JSON Web Key Set.
pub const KEYS_PATH: &str = "/openid/v1/jwks";

/// The documents at [`CONFIGURATION_PATH`] and [`KEYS_PATH`].
#[derive(Clone, Debug)]
pub struct KeyDiscovery {
    /// The discovery document, as JSON.
    pub configuration: String,
    /// The JSON Web Key Set.
    pub keys: String,
}

impl KeyDiscovery {
    /// Makes the documents of a server that is reached at `address` (`host:port`); `None` if its issuer is no URL that
    /// OpenID Connect allows.
    #[must_use]
    pub fn new(config: &ServiceAccountConfig, address: &str) -> Option<Self> {
        let issuer = config.issuers.first()?;
        let uri: Uri = issuer.parse().ok()?;
        if uri.scheme_str() != Some("https") || uri.query().is_some() || issuer.contains('#') {
            return None;
        }
        let keys = config.keys();
        let mut algorithms: Vec<String> = keys
            .iter()
            .map(|key| format!("{:?}", key.algorithm))
            .collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let here = || format!("https://{address}{KEYS_PATH}");
        let keys_uri = config.keys_uri.clone().unwrap_or_else(here);
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": keys_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        });
        let keys = JwkSet {
            keys: keys.into_iter().map(|key| key.jwk).collect(),
        };
        Some(Self {
            configuration: configuration.to_string(),
            keys: serde_json::to_string(&keys).ok()?,
        })
    }
}
