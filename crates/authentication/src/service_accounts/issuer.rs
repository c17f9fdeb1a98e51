//! Issues tokens of service accounts, signed as JWTs.

use jiff::Timestamp;
use jsonwebtoken::Header;
use ringwatch_apimachinery::SERVICE_ACCOUNT_PREFIX;

use super::ServiceAccountConfig;
use super::claims::{AccountClaims, BoundObject, Kubernetes, Reference};
use crate::jwt::{Audiences, Seconds};
use crate::keys::{KeyError, SigningKey};

/// The expiration that kube-apiserver requests for tokens that it mounts into pods, in seconds. Such tokens are valid
/// for longer, for clients that read the file only once.
const MOUNTED_SECONDS: i64 = 3607;
/// The seconds for which such tokens are valid.
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// Signs tokens for service accounts with the server's key.
#[derive(Clone, Debug)]
pub struct TokenIssuer {
    name: String,
    audiences: Vec<String>,
    key: SigningKey,
    seconds_max: Option<i64>,
    extends_mounted: bool,
}

/// The claims of a token that is to be issued.
#[derive(Clone, Debug)]
pub struct Grant<'a> {
    /// The namespace of the service account.
    pub namespace: &'a str,
    /// The service account's name and uid.
    pub account: Reference,
    /// The audiences of the token.
    pub audiences: Vec<String>,
    /// The lifetime of the token, in seconds.
    pub seconds: i64,
    /// The object with whose deletion the token becomes invalid earlier.
    pub bound: BoundObject,
}

impl TokenIssuer {
    /// Creates an issuer that signs with the configured key.
    #[must_use]
    pub fn new(config: &ServiceAccountConfig) -> Self {
        Self {
            name: config.issuers.first().cloned().unwrap_or_default(),
            audiences: config.audiences.clone(),
            key: config.signing.clone(),
            seconds_max: config.seconds_max,
            extends_mounted: config.extends_mounted,
        }
    }

    /// Returns the audiences of a token whose request names none: this server's.
    #[must_use]
    pub fn default_audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Limits a lifetime in seconds to the configured maximum.
    #[must_use]
    pub fn longest(&self, seconds: i64) -> i64 {
        self.seconds_max.map_or(seconds, |most| seconds.min(most))
    }

    /// Returns a new signed token, which is valid from `now`.
    ///
    /// # Errors
    /// [`KeyError::Failed`] if it cannot be signed.
    pub fn issue(&self, grant: Grant<'_>, now: Timestamp) -> Result<String, KeyError> {
        let now = now.as_second();
        let (seconds, warn_after) = self.lifetime(&grant);
        let sub = format!(
            "{SERVICE_ACCOUNT_PREFIX}{}:{}",
            grant.namespace, grant.account.name
        );
        let (mut node, mut pod, mut secret) = (None, None, None);
        match grant.bound {
            BoundObject::Account => {}
            BoundObject::Pod {
                pod: its,
                node: on_node,
            } => (pod, node) = (Some(its), on_node),
            BoundObject::Secret(its) => secret = Some(its),
            BoundObject::Node(its) => node = Some(its),
        }
        let claims = AccountClaims {
            aud: Audiences(grant.audiences),
            exp: Some(Seconds(now.saturating_add(seconds))),
            iat: Some(Seconds(now)),
            iss: self.name.clone(),
            jti: uuid::Uuid::new_v4().to_string(),
            kubernetes: Kubernetes {
                namespace: grant.namespace.to_owned(),
                node,
                pod,
                secret,
                serviceaccount: grant.account,
                warnafter: warn_after.map(|seconds| Seconds(now.saturating_add(seconds))),
            },
            nbf: Some(Seconds(now)),
            sub,
        };
        let header = Header {
            typ: None,
            kid: Some(self.key.public.id.clone()),
            ..Header::new(self.key.public.algorithm)
        };
        jsonwebtoken::encode(&header, &claims, &self.key.key)
            .map_err(|error| KeyError::Failed(error.to_string()))
    }

    /// Returns the lifetime of a token in seconds, and after how long it should be replaced if that is earlier.
    fn lifetime(&self, grant: &Grant<'_>) -> (i64, Option<i64>) {
        let mounted =
            matches!(grant.bound, BoundObject::Pod { .. }) && grant.seconds == MOUNTED_SECONDS;
        let ours = |audience| self.audiences.contains(audience);
        if self.extends_mounted && mounted && grant.audiences.iter().all(ours) {
            (EXTENDED_SECONDS, Some(grant.seconds))
        } else {
            (grant.seconds, None)
        }
    }
}
