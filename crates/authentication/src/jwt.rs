//! JSON web tokens: parses them, and verifies their signatures and times.
//!
//! Times and audiences are judged by who knows what they mean; only one clock counts here, and it is not the
//! library's.

use std::collections::HashSet;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// The most bytes of a token; longer ones are refused unread.
pub(super) const TOKEN_BYTES_MAX: usize = 128 << 10;

/// The number of seconds by which the clock of the issuer may differ, as in kube-apiserver.
const LEEWAY_SECONDS: i64 = 60;

/// The parsed header and issuer of a token, whose signature has not been verified.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnverifiedToken {
    /// The issuer that the token claims to be from: `iss`.
    pub(super) issuer: String,
    /// The id of the key that has signed it; empty if it has none.
    pub(super) key_id: String,
    /// The algorithm of the signature.
    pub(super) algorithm: Algorithm,
}

#[derive(Deserialize)]
struct Issuer {
    #[serde(default)]
    iss: String,
}

impl UnverifiedToken {
    /// Parses a token; `None` if it is no JWT, or has critical extensions.
    pub(super) fn read(token: &str) -> Option<Self> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let header = jsonwebtoken::decode_header(token).ok()?;
        if header.crit.is_some() {
            return None;
        }
        let claims: Issuer = jsonwebtoken::dangerous::insecure_decode_claims(token).ok()?;
        Some(Self {
            issuer: claims.iss,
            key_id: header.kid.unwrap_or_default(),
            algorithm: header.alg,
        })
    }
}

/// Returns the claims of a token that a key has signed with an algorithm; `None` if it has not.
pub(super) fn verified<T: DeserializeOwned>(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Option<T> {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims = HashSet::new();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let token = jsonwebtoken::decode(token, key, &validation).ok()?;
    Some(token.claims)
}

/// The reason why a token is not valid at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untimely {
    Expired,
    NotValidYet,
    IssuedInTheFuture,
}

/// The times between which a token is valid.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) expires: Option<Seconds>,
    pub(super) not_before: Option<Seconds>,
    pub(super) issued_at: Option<Seconds>,
}

impl Times {
    /// Checks that the token is valid now. Missing times do not restrict it.
    pub(super) fn check(self, now: Timestamp) -> Result<(), Untimely> {
        let (earliest, latest) = (leeway_before(now), now.as_second() + LEEWAY_SECONDS);
        if self.not_before.is_some_and(|it| latest < it.0) {
            return Err(Untimely::NotValidYet);
        }
        if self.expires.is_some_and(|it| earliest > it.0) {
            return Err(Untimely::Expired);
        }
        if self.issued_at.is_some_and(|it| latest < it.0) {
            return Err(Untimely::IssuedInTheFuture);
        }
        Ok(())
    }
}

/// Returns the time that may still be another's now, in seconds since the epoch.
pub(super) fn leeway_before(now: Timestamp) -> i64 {
    now.as_second() - LEEWAY_SECONDS
}

/// A time in seconds since the epoch, which some issuers write as 1e9 or with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Seconds(pub(super) i64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "saturates, which is as good"
        )]
        let seconds = number
            .as_i64()
            .or_else(|| number.as_f64().map(|it| it as i64));
        let seconds = seconds.ok_or_else(|| serde::de::Error::custom("not a time"))?;
        Ok(Self(seconds))
    }
}

/// The audiences of a token: a string or a list of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Audiences(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Audiences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(audience) => Self(vec![audience]),
            OneOrMany::Many(audiences) => Self(audiences),
        })
    }
}
