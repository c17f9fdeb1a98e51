//! Follows the keys of an OpenID Connect provider.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use ringwatch::clock::Clock;
use ringwatch_authentication::oidc::{
    AttributeSource, ClaimMapping, JwtIssuer, OidcError, OidcTokens, ProviderKeys,
};
use ringwatch_http::client::https_get::{self, GetError};
use ringwatch_tls::error::StartError;
use ringwatch_tls::tls_client::{Trust, config};
use rustls::ClientConfig;

use super::flags::OidcFlags;

/// Period in which keys are fetched even if no token needs newer ones, so that withdrawn keys stop being accepted.
const REFRESH_PERIOD: Duration = Duration::from_secs(600);
/// Minimum time between fetches, and between a failure and the next attempt.
const FETCH_PERIOD_MIN: Duration = Duration::from_secs(2);

/// An OpenID Connect provider, and how it is reached.
#[derive(Debug)]
pub(crate) struct Provider {
    /// Verifies its tokens.
    pub(crate) tokens: Arc<OidcTokens>,
    /// The URL of its discovery document.
    discovery: String,
    tls: Arc<ClientConfig>,
}

/// The algorithms that are accepted by default: all with public keys.
const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// The reason why keys could not be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Get(#[from] GetError),
    #[error("{0}")]
    Provider(#[from] OidcError),
}

impl Provider {
    /// Returns the provider if the flags name one.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub(crate) fn load(flags: &OidcFlags, clock: &Clock) -> Result<Option<Self>, StartError> {
        let named = flags
            .oidc_issuer_url
            .clone()
            .zip(flags.oidc_client_id.clone());
        let Some((issuer, client_id)) = named else {
            return Ok(None);
        };
        let username = AttributeSource::Claim {
            name: flags.oidc_username_claim.clone(),
            prefix: flags.username_prefix(&issuer),
        };
        let groups = flags
            .oidc_groups_claim
            .clone()
            .map(|name| AttributeSource::Claim {
                name,
                prefix: flags.oidc_groups_prefix.clone(),
            });
        let mapping = ClaimMapping {
            groups,
            required: flags.oidc_required_claim.clone(),
            ..ClaimMapping::new(username)
        };
        let algorithms = flags.oidc_signing_algs.clone();
        let discovery = discovery_url(&issuer);
        Ok(Some(Self {
            tokens: Arc::new(OidcTokens::new(
                issuer,
                vec![client_id],
                algorithms,
                mapping,
                clock.clone(),
            )),
            discovery,
            tls: client_config(flags)?,
        }))
    }

    /// Returns the provider that an AuthenticationConfiguration describes.
    ///
    /// # Errors
    /// The error in its certificate authorities.
    pub(crate) fn new(issuer: JwtIssuer, clock: &Clock) -> Result<Self, String> {
        let trust = match &issuer.certificate_authority {
            Some(pem) => Trust::bundle(pem.as_bytes())?,
            None => Trust::system(),
        };
        let discovery = issuer.discovery_url;
        let discovery = discovery.unwrap_or_else(|| discovery_url(&issuer.url));
        let tls = config(trust, None).map_err(|error| error.to_string())?;
        let (url, audiences) = (issuer.url, issuer.audiences);
        let (algorithms, clock) = (ALGORITHMS.to_vec(), clock.clone());
        let tokens = OidcTokens::new(url, audiences, algorithms, issuer.mapping, clock);
        Ok(Self {
            tokens: Arc::new(tokens),
            discovery,
            tls,
        })
    }

    /// Fetches the keys. Returns true if they are known now.
    pub(crate) async fn prepare(&self, clock: &Clock) -> bool {
        match self.fetch(clock).await {
            Ok(keys) => {
                self.tokens.take_keys(Some(keys));
                true
            }
            Err(error) => {
                let issuer = self.tokens.issuer();
                tracing::warn!(%error, issuer, "cannot fetch the keys of the OpenID provider");
                false
            }
        }
    }

    /// Fetches the keys now, when a token needs newer ones, and from time to time.
    pub(crate) async fn follow(self, clock: Clock) {
        loop {
            let fetched = self.fetch(&clock).await;
            if let Err(error) = &fetched {
                let issuer = self.tokens.issuer();
                tracing::warn!(%error, issuer, "cannot fetch the keys of the OpenID provider");
            }
            let failed = fetched.is_err();
            self.tokens.take_keys(fetched.ok());
            clock.sleep(FETCH_PERIOD_MIN).await;
            if !failed {
                tokio::select! {
                    () = self.tokens.keys_wanted() => {}
                    () = clock.sleep(REFRESH_PERIOD) => {}
                }
            }
        }
    }

    async fn fetch(&self, clock: &Clock) -> Result<ProviderKeys, FetchError> {
        let issuer = self.tokens.issuer();
        let configuration = https_get::get(&self.discovery, &self.tls, clock).await?;
        let place = ProviderKeys::place(&configuration, issuer)?;
        let keys = https_get::get(&place, &self.tls, clock).await?;
        Ok(ProviderKeys::read(&keys)?)
    }
}

/// Trusts the authorities in the named file, or else the machine's.
fn client_config(flags: &OidcFlags) -> Result<Arc<ClientConfig>, StartError> {
    let trust = match &flags.oidc_ca_file {
        Some(path) => Trust::file(path, "--oidc-ca-file")?,
        None => Trust::system(),
    };
    config(trust, None)
        .map_err(|error| StartError::new("speak TLS with the provider", error, "report this"))
}

/// Returns the default URL of an issuer's discovery document.
fn discovery_url(issuer: &str) -> String {
    let base = issuer.trim_end_matches('/');
    format!("{base}/.well-known/openid-configuration")
}
