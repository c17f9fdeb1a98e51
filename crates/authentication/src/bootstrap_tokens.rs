//! Bootstrap tokens: the tokens by which new nodes join a cluster, kept in Secrets of kube-system.
//!
//! Follows plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go and the package
//! `k8s.io/cluster-bootstrap/util/secrets` of Kubernetes 1.36.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use jiff::Timestamp;
use ringwatch_apimachinery::User;
use ringwatch_registry::Store;

use super::TokenError;
use super::stored::{TokenSecret, cached};

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";
const KIND: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
/// The group of all users with such a token, and the beginning of the names of further groups.
const GROUP: &str = "system:bootstrappers";
/// The numbers of characters of the two parts of a token.
const ID_CHARACTERS: usize = 6;
const SECRET_CHARACTERS: usize = 16;
/// The most characters between the prefix and the last character of a further group.
const GROUP_INNER_CHARACTERS_MAX: usize = 255;

/// Authenticates bootstrap tokens.
#[derive(Debug)]
pub struct BootstrapTokens {
    secrets: Arc<Store>,
}

impl BootstrapTokens {
    /// Accepts the tokens of the Secrets of a store. Only its cache is asked, since anybody may try tokens.
    #[must_use]
    pub fn new(secrets: Arc<Store>) -> Self {
        Self { secrets }
    }

    /// Returns the user of a token; `None` if it is not a bootstrap token or not a valid one.
    ///
    /// # Errors
    /// [`TokenError::Lookup`] if the Secret cannot be read.
    pub(super) async fn identify(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<User>, TokenError> {
        let Some((id, secret)) = parse(token) else {
            return Ok(None);
        };
        let name = format!("{NAME_PREFIX}{id}");
        let Some(found) = cached(&self.secrets, NAMESPACE, &name).await? else {
            tracing::debug!(name, "there is no Secret for a bootstrap token");
            return Ok(None);
        };
        let found = TokenSecret::new(&found)?;
        match groups(&found, (id, secret), now) {
            Ok(groups) => Ok(Some(User {
                name: format!("{USER_PREFIX}{id}"),
                groups,
                ..User::default()
            })),
            Err(why) => {
                tracing::debug!(name, why, "a bootstrap token is not valid");
                Ok(None)
            }
        }
    }
}

/// Returns the id and the secret part of a token; `None` if it does not have the form of a bootstrap token.
fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |text: &str, count: usize| {
        let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
        text.len() == count && text.bytes().all(plain)
    };
    (is_plain(id, ID_CHARACTERS) && is_plain(secret, SECRET_CHARACTERS)).then_some((id, secret))
}

/// Returns the groups of the user of a token by its Secret, or the reason why the token is not valid.
fn groups(
    stored: &TokenSecret<'_>,
    (id, secret): (&str, &str),
    now: Timestamp,
) -> Result<Vec<String>, &'static str> {
    let data = |key: &str| stored.data(key);
    if stored.is_deleted() {
        return Err("it is deleted and awaiting removal");
    }
    if stored.kind() != KIND {
        return Err("the Secret has another type");
    }
    if verify_slices_are_equal(&data("token-secret"), secret.as_bytes()).is_err() {
        return Err("token-secret is another one");
    }
    if *data("token-id") != *id.as_bytes() {
        return Err("token-id is another one");
    }
    let expiration = data("expiration");
    if !expiration.is_empty() {
        let time = std::str::from_utf8(&expiration).ok();
        let time = time.and_then(|it| it.parse::<Timestamp>().ok());
        if time.is_none_or(|time| time <= now) {
            return Err("it has expired");
        }
    }
    if *data("usage-bootstrap-authentication") != *b"true" {
        return Err("usage-bootstrap-authentication is not true");
    }
    let further =
        String::from_utf8(data("auth-extra-groups").into_owned()).map_err(|_| NOT_GROUPS)?;
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    for group in further.split(',').filter(|_| !further.is_empty()) {
        if !is_group(group) {
            return Err(NOT_GROUPS);
        }
        groups.insert(group.to_owned());
    }
    Ok(groups.into_iter().collect())
}

const NOT_GROUPS: &str = "auth-extra-groups has something else than groups of bootstrappers";

/// Returns true if a text is the name of a further group of bootstrappers.
fn is_group(text: &str) -> bool {
    let rest = text.strip_prefix(GROUP).and_then(|it| it.strip_prefix(':'));
    let Some((last, inner)) = rest.and_then(|it| it.as_bytes().split_last()) else {
        return false;
    };
    let is_plain = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    inner.len() <= GROUP_INNER_CHARACTERS_MAX
        && is_plain(last)
        && inner.iter().all(|it| is_plain(it) || b":-".contains(it))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use ringwatch_registry::CreateOptions;
    use ringwatch_registry::testing::{MemoryStorage, context};
    use serde_json::{Value, json};

    use super::*;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    async fn identified(token: &str, change: impl FnOnce(&mut Value)) -> Option<User> {
        let identified = identify(token, change).await;
        identified.expect("readable")
    }

    async fn identify(
        token: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Option<User>, TokenError> {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": KIND,
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": NAMESPACE},
            "data": {"token-id": "abcdef", "token-secret": "0123456789abcdef",
                "usage-bootstrap-authentication": "true", "expiration": "1970-01-01T00:01:41Z",
                "auth-extra-groups": "system:bootstrappers:b:1,system:bootstrappers:a-1"}});
        change(&mut secret);
        for value in secret["data"].as_object_mut().into_iter().flatten() {
            *value.1 = json!(STANDARD.encode(value.1.as_str().unwrap_or_default()));
        }
        let storage = MemoryStorage::new("/secrets");
        let resources = ringwatch_resources::built_in();
        let secrets = resources.into_iter().find(|it| it.plural == "secrets");
        let store = Arc::new(Store::new(secrets.expect("built in"), storage as _));
        let options = CreateOptions::default();
        let created = store.create(&context(), NAMESPACE, secret, &options).await;
        created.expect("created");
        let now = Timestamp::from_second(100).expect("a time");
        BootstrapTokens::new(store).identify(token, now).await
    }

    #[tokio::test]
    async fn a_secret_may_be_large() {
        let large = |secret: &mut Value| secret["data"]["other"] = json!("x".repeat(1_000_000));
        let user = identify(TOKEN, large).await.expect("readable");
        assert_eq!(user.expect("a user").name, "system:bootstrap:abcdef");
    }

    #[tokio::test]
    async fn a_valid_token_is_a_bootstrapper() {
        let user = identified(TOKEN, |_| {}).await.expect("a user");
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(
            user.groups,
            [
                "system:bootstrappers",
                "system:bootstrappers:a-1",
                "system:bootstrappers:b:1"
            ]
        );
        let bare = identified(TOKEN, |secret| {
            let data = secret["data"].as_object_mut().expect("data");
            data.retain(|key, _| !matches!(key.as_str(), "expiration" | "auth-extra-groups"));
        });
        assert_eq!(bare.await.expect("a user").groups, ["system:bootstrappers"]);
    }

    #[tokio::test]
    async fn other_tokens_are_nobodys() {
        for token in [
            "abcdef.0123456789abcdeX",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdff",
            "abcdeg.0123456789abcdef",
            "abcdef0123456789abcdef",
            "",
        ] {
            assert_eq!(identified(token, |_| {}).await, None, "{token}");
        }
        for (key, value) in [
            ("token-id", "abcdeg"),
            ("token-secret", "0123456789abcdeg"),
            ("usage-bootstrap-authentication", "True"),
            ("usage-bootstrap-authentication", ""),
            ("expiration", "1970-01-01T00:01:40Z"),
            ("expiration", "soon"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers:"),
            ("auth-extra-groups", "system:bootstrappers:a,"),
            ("auth-extra-groups", "system:bootstrappers:A"),
        ] {
            let found = identified(TOKEN, |secret| secret["data"][key] = json!(value));
            assert_eq!(found.await, None, "{key}={value}");
        }
        let typed = identified(TOKEN, |secret| secret["type"] = json!("Opaque"));
        assert_eq!(typed.await, None);
    }
}
