//! Authenticates service account tokens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::{SERVICE_ACCOUNT_PREFIX, User};
use serde::de::DeserializeOwned;

use super::ServiceAccountConfig;
use super::account_stores::AccountStores;
use super::claims::{AccountClaims, Reference};
use super::last_use::LastUses;
use super::legacy::{self, LegacyClaims};
use crate::jwt::{Untimely, UnverifiedToken, leeway_before, verified};
use crate::keys::VerifyingKey;
use crate::stored::{ObjectLookup, find};
use crate::{TokenError, TokenUser, target_audiences};

const ALL_ACCOUNTS: &str = "system:serviceaccounts";
const EXTRA_PREFIX: &str = "authentication.kubernetes.io/";

/// Authenticates tokens of service accounts.
#[derive(Debug)]
pub struct ServiceAccountTokens {
    issuers: Vec<String>,
    audiences: Vec<String>,
    keys: Vec<VerifyingKey>,
    stores: AccountStores,
    /// True if the Secrets of tokens that lie in Secrets are looked up.
    looks_up_secrets: bool,
    last_uses: LastUses,
    clock: Clock,
}

impl ServiceAccountTokens {
    /// Takes tokens that are signed with one of the configured keys.
    #[must_use]
    pub fn new(config: &ServiceAccountConfig, stores: AccountStores, clock: Clock) -> Self {
        Self {
            issuers: config.issuers.clone(),
            audiences: config.audiences.clone(),
            keys: config.keys(),
            stores,
            looks_up_secrets: config.lookup,
            last_uses: LastUses::default(),
            clock,
        }
    }

    /// Returns the user of a token that is for one of these audiences; `None` if it is not a service account token.
    ///
    /// # Errors
    /// [`TokenError`] for one that is, but is not good.
    pub async fn identify(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<Option<TokenUser>, TokenError> {
        let Some(head) = UnverifiedToken::read(token) else {
            return Ok(None);
        };
        if head.issuer == legacy::ISSUER {
            let legacy = self.identify_legacy(token, &head, wanted, now).await;
            if legacy.is_ok() || !self.issuers.contains(&head.issuer) {
                return legacy.map(Some);
            }
        }
        if !self.issuers.contains(&head.issuer) {
            return Ok(None);
        }
        let claims: AccountClaims =
            self.claims(token, &head, |claims: &AccountClaims| &claims.iss)?;
        let audiences = target_audiences(&claims.aud.0, &self.audiences, wanted)?;
        claims.times().check(now).map_err(|why| {
            TokenError::Untimely(match why {
                Untimely::Expired => "service account token has expired",
                Untimely::NotValidYet => "service account token is not valid yet",
                Untimely::IssuedInTheFuture => "service account token is issued in the future",
            })
        })?;
        self.check_objects(&claims, leeway_before(now)).await?;
        Ok(Some(TokenUser {
            user: user(claims),
            audiences,
        }))
    }

    /// Returns the user of a token that lies in a Secret.
    async fn identify_legacy(
        &self,
        token: &str,
        head: &UnverifiedToken,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<TokenUser, TokenError> {
        let claims: LegacyClaims = self.claims(token, head, |claims: &LegacyClaims| &claims.iss)?;
        let audiences = target_audiences(&claims.aud.0, &self.audiences, wanted)?;
        claims.check()?;
        if self.looks_up_secrets {
            let secret = claims.secret(token, &self.stores).await?;
            let secrets = &self.stores.secrets;
            self.last_uses
                .note(secrets, &secret, &self.clock, now)
                .await;
            claims.check_validity(&secret)?;
        }
        let user = account_user(&claims.namespace, &claims.account, claims.uid.clone());
        Ok(TokenUser { user, audiences })
    }

    /// Returns the claims of the token if one of the keys has signed it.
    fn claims<C: DeserializeOwned>(
        &self,
        token: &str,
        head: &UnverifiedToken,
        issuer: impl Fn(&C) -> &String,
    ) -> Result<C, TokenError> {
        let mut keys = self
            .keys
            .iter()
            .filter(|key| head.key_id.is_empty() || head.key_id == key.id)
            .peekable();
        if keys.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        keys.filter(|key| key.algorithm == head.algorithm)
            .find_map(|key| verified(token, &key.key, key.algorithm))
            .filter(|claims| *issuer(claims) == head.issuer)
            .ok_or(TokenError::WrongSignature)
    }

    /// Checks that the account exists, and the object that the token is bound to.
    async fn check_objects(
        &self,
        claims: &AccountClaims,
        deleted_by: i64,
    ) -> Result<(), TokenError> {
        let its = &claims.kubernetes;
        let namespace = its.namespace.as_str();
        let account = &its.serviceaccount;
        let named = (account.name.as_str(), account.uid.as_str());
        match find(&self.stores.accounts, namespace, named, deleted_by).await? {
            ObjectLookup::There => {}
            ObjectLookup::Gone => return Err(TokenError::NoAccount(account.name.clone())),
            ObjectLookup::Deleted => {
                let name = format!("{namespace}/{}", account.name);
                return Err(TokenError::AccountDeleted(name));
            }
            ObjectLookup::Other(uid) => {
                return Err(TokenError::OtherAccount {
                    uid,
                    claimed: account.uid.clone(),
                });
            }
        }
        // The node of a pod is added, but the token does not end with it.
        let node = its.node.as_ref().filter(|_| its.pod.is_none());
        for (kind, store, namespace, bound) in [
            (
                "secret",
                &self.stores.secrets,
                namespace,
                its.secret.as_ref(),
            ),
            ("pod", &self.stores.pods, namespace, its.pod.as_ref()),
            ("node", &self.stores.nodes, "", node),
        ] {
            let Some(bound) = bound else {
                continue;
            };
            let named = (bound.name.as_str(), bound.uid.as_str());
            match find(store, namespace, named, deleted_by).await? {
                ObjectLookup::There => {}
                ObjectLookup::Gone | ObjectLookup::Deleted => return Err(TokenError::Invalidated),
                ObjectLookup::Other(uid) => {
                    return Err(TokenError::OtherObject {
                        kind,
                        uid,
                        claimed: bound.uid.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns the account as a user.
fn user(claims: AccountClaims) -> User {
    let its = claims.kubernetes;
    let mut extra = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            extra.insert(format!("{EXTRA_PREFIX}{name}"), vec![value]);
        }
    };
    if !claims.jti.is_empty() {
        add("credential-id", format!("JTI={}", claims.jti));
    }
    for (kind, reference) in [("pod", its.pod), ("node", its.node)] {
        let Reference { name, uid } = reference.unwrap_or_default();
        add(&format!("{kind}-name"), name);
        add(&format!("{kind}-uid"), uid);
    }
    let account = its.serviceaccount;
    User {
        extra,
        ..account_user(&its.namespace, &account.name, account.uid)
    }
}

/// Returns the user of an account, of which nothing else is known.
fn account_user(namespace: &str, name: &str, uid: String) -> User {
    User {
        name: format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"),
        uid,
        groups: vec![
            ALL_ACCOUNTS.to_owned(),
            format!("{ALL_ACCOUNTS}:{namespace}"),
        ],
        extra: BTreeMap::new(),
    }
}
