//! All kinds of credentials, in order.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;

use super::{CertifiedUser, TokenFile};
use crate::registry::User;

/// The group of everybody who has been identified.
const AUTHENTICATED: &str = "system:authenticated";

/// Tells who asks.
#[derive(Debug, Default)]
pub struct Authenticator {
    tokens: TokenFile,
}

impl Authenticator {
    /// An authenticator that knows these tokens.
    #[must_use]
    pub fn new(tokens: TokenFile) -> Self {
        Self { tokens }
    }

    /// The user behind a request; `None` if it has no good credentials.
    #[must_use]
    pub fn authenticate(
        &self,
        certified: Option<&CertifiedUser>,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Option<User> {
        let mut user = match certified.filter(|certified| certified.is_valid_at(now)) {
            Some(certified) => certified.user.clone(),
            None => self.tokens.user(bearer_token(headers)?)?.clone(),
        };
        if !user.groups.iter().any(|group| group == AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        Some(user)
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .trim()
        .split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authenticate(authorization: Option<&str>, certified: Option<CertifiedUser>) -> Option<User> {
        let tokens = TokenFile::parse("secret,ann,1,\"a,b\"").expect("tokens");
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
        }
        let now = Timestamp::from_second(100).expect("a time");
        Authenticator::new(tokens).authenticate(certified.as_ref(), &headers, now)
    }

    fn certified(until_seconds: i64) -> CertifiedUser {
        CertifiedUser {
            user: User {
                name: "bob".to_owned(),
                ..User::default()
            },
            valid_until_seconds: until_seconds,
        }
    }

    #[test]
    fn a_token_identifies_its_user() {
        let user = authenticate(Some("bearer secret"), None).expect("a user");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "1"));
        assert_eq!(user.groups, ["a", "b", AUTHENTICATED]);
    }

    #[test]
    fn no_or_bad_credentials_identify_nobody() {
        for value in [
            None,
            Some("Bearer other"),
            Some("Basic secret"),
            Some("secret"),
            Some("Bearer "),
        ] {
            assert_eq!(authenticate(value, None), None, "{value:?}");
        }
    }

    #[test]
    fn a_certificate_counts_first_and_only_while_valid() {
        let user = authenticate(Some("Bearer secret"), Some(certified(101))).expect("a user");
        assert_eq!(user.name, "bob");
        let user = authenticate(Some("Bearer secret"), Some(certified(99))).expect("a user");
        assert_eq!(user.name, "ann");
        assert_eq!(authenticate(None, Some(certified(99))), None);
    }
}
