//! Authenticates tokens of an OpenID Connect provider.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey};
use ringwatch::clock::Clock;
use ringwatch_apimachinery::User;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};

use super::{ClaimMapping, OidcError, ProviderKeys};
use crate::jwt::{Audiences, Seconds, UnverifiedToken, verified};

/// The time that a token waits for newer keys.
const KEYS_WAIT_MAX: Duration = Duration::from_secs(5);
/// The most tokens that may wait at a time, so that a flood of tokens of unknown keys is refused at once.
const WAITING_MAX: usize = 64;
/// The number of seconds by which the provider's clock may be ahead.
const NOT_BEFORE_LEEWAY_SECONDS: i64 = 300;

/// Authenticates the tokens of one provider.
#[derive(Debug)]
pub struct OidcTokens {
    issuer: String,
    /// The accepted audiences, of which a token must have one.
    audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    mapping: ClaimMapping,
    /// The provider's keys; `None` until they have been fetched.
    keys: watch::Sender<Option<ProviderKeys>>,
    /// Notified when a token needs newer keys.
    wanted: Notify,
    waiting: Semaphore,
    clock: Clock,
}

/// The claims that every token has.
#[derive(Deserialize)]
struct StandardClaims {
    #[serde(default)]
    aud: Audiences,
    exp: Option<Seconds>,
    nbf: Option<Seconds>,
    iss: String,
}

impl OidcTokens {
    /// Takes tokens that an issuer made for one of these audiences, signed in one of these ways.
    #[must_use]
    pub fn new(
        issuer: String,
        audiences: Vec<String>,
        algorithms: Vec<Algorithm>,
        mapping: ClaimMapping,
        clock: Clock,
    ) -> Self {
        Self {
            issuer,
            audiences,
            algorithms,
            mapping,
            keys: watch::Sender::new(None),
            wanted: Notify::new(),
            waiting: Semaphore::new(WAITING_MAX),
            clock,
        }
    }

    /// Returns the issuer of these tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Takes the keys that were fetched; `None` if they could not be, and the old ones stay.
    pub fn take_keys(&self, fetched: Option<ProviderKeys>) {
        self.keys.send_modify(|keys| {
            if fetched.is_some() {
                *keys = fetched;
            }
        });
    }

    /// Waits until a token needs newer keys.
    pub async fn keys_wanted(&self) {
        self.wanted.notified().await;
    }

    /// Returns the user of a token; `None` if the token is of another issuer.
    ///
    /// # Errors
    /// [`OidcError`] if it is, but is not good.
    pub(crate) async fn identify(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<User>, OidcError> {
        let Some(head) = UnverifiedToken::read(token).filter(|head| head.issuer == self.issuer)
        else {
            return Ok(None);
        };
        if !self.algorithms.contains(&head.algorithm) {
            return Err(OidcError::Signature);
        }
        let keys = self.keys_of(&head).await?;
        let all: Option<Map<String, Value>> = keys
            .iter()
            .find_map(|key| verified(token, key, head.algorithm));
        let all = all.ok_or(OidcError::Signature)?;
        let claims = StandardClaims::deserialize(&all).map_err(|_| OidcError::Signature)?;
        if claims.iss != self.issuer {
            return Err(OidcError::Signature);
        }
        self.check(&claims, now)?;
        self.mapping.user(&all).map(Some)
    }

    /// Returns the keys that may have signed a token. If there is none, newer keys are waited for once.
    async fn keys_of(&self, head: &UnverifiedToken) -> Result<Vec<DecodingKey>, OidcError> {
        let mut changes = self.keys.subscribe();
        let known = self.known(head);
        if known.as_ref().is_ok_and(|keys| !keys.is_empty()) {
            return known;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return known;
        };
        self.wanted.notify_one();
        let fetched = self.clock.timeout(KEYS_WAIT_MAX, changes.changed());
        let _ = fetched.await;
        self.known(head)
    }

    fn known(&self, head: &UnverifiedToken) -> Result<Vec<DecodingKey>, OidcError> {
        let keys = self.keys.borrow();
        let keys = keys.as_ref().ok_or(OidcError::NoKeys)?;
        Ok(keys.named(&head.key_id, head.algorithm))
    }

    /// Checks the audiences and times of a token.
    fn check(&self, claims: &StandardClaims, now: Timestamp) -> Result<(), OidcError> {
        if !claims.aud.0.iter().any(|it| self.audiences.contains(it)) {
            return Err(OidcError::Audience {
                wanted: self.audiences.clone(),
                token: claims.aud.0.clone(),
            });
        }
        let now = now.as_second();
        if claims.exp.is_none_or(|expires| now > expires.0) {
            return Err(OidcError::Untimely("token is expired"));
        }
        let latest = now + NOT_BEFORE_LEEWAY_SECONDS;
        if claims.nbf.is_some_and(|not_before| latest < not_before.0) {
            return Err(OidcError::Untimely(
                "current time is before the nbf (not before) time",
            ));
        }
        Ok(())
    }
}
