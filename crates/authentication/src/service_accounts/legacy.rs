//! Tokens of service accounts that are kept in Secrets and do not expire.
//!
//! kube-controller-manager issues them. Follows pkg/serviceaccount/legacy.go of Kubernetes 1.36; the metrics and warnings
//! about their use are left out.

use async_trait::async_trait;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::{Error, User, service_account};
use ringwatch_registry::{RequestContext, Store, UpdateOptions, UpdatedObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::account_stores::AccountStores;
use crate::TokenError;
use crate::jwt::Audiences;

/// The issuer of these tokens.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The claims of such a token.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LegacyClaims {
    pub(super) iss: String,
    pub(super) aud: Audiences,
    sub: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub(super) namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub(super) account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub(super) uid: String,
}

impl LegacyClaims {
    /// Checks that the claims are complete and agree with each other.
    fn check(&self) -> Result<(), TokenError> {
        for (claim, name) in [
            (&self.sub, "sub"),
            (&self.namespace, "namespace"),
            (&self.secret, "secretName"),
            (&self.account, "serviceAccountName"),
            (&self.uid, "serviceAccountUID"),
        ] {
            if claim.is_empty() {
                return Err(wrong(format!("{name} claim is missing")));
            }
        }
        if service_account(&self.sub) != Some((&self.namespace, &self.account)) {
            return Err(wrong("sub claim is invalid"));
        }
        Ok(())
    }

    /// Checks the claims of a token, and if `lookup` is true that the Secret with the token and the account exist. The
    /// Secret is labelled with the day of the use.
    pub(super) async fn validate(
        &self,
        token: &str,
        stores: &AccountStores,
        lookup: Option<&Clock>,
        now: Timestamp,
    ) -> Result<(), TokenError> {
        self.check()?;
        let Some(clock) = lookup else { return Ok(()) };
        let Self {
            namespace,
            secret: name,
            account,
            uid,
            ..
        } = self;
        let secret = found(&stores.secrets, namespace, name).await?;
        let Some(secret) = secret.filter(|it| it["metadata"]["deletionTimestamp"].is_null()) else {
            return Err(wrong("Token has been invalidated"));
        };
        let stored = secret["data"]["token"].as_str().unwrap_or_default();
        let stored = STANDARD.decode(stored).unwrap_or_default();
        if verify_slices_are_equal(&stored, token.as_bytes()).is_err() {
            return Err(wrong("Token does not match server's copy"));
        }
        let Some(found) = found(&stores.accounts, namespace, account).await? else {
            return Err(TokenError::NoAccount(account.clone()));
        };
        let metadata = &found["metadata"];
        if !metadata["deletionTimestamp"].is_null() {
            let why = format!("ServiceAccount {namespace}/{account} has been deleted");
            return Err(wrong(why));
        }
        if metadata["uid"] != *uid {
            let found = metadata["uid"].as_str().unwrap_or_default();
            let why = format!("ServiceAccount UID ({found}) does not match claim ({uid})");
            return Err(wrong(why));
        }
        note_use(&stores.secrets, &secret, clock, now).await;
        let labels = &secret["metadata"]["labels"];
        if labels[INVALID_SINCE]
            .as_str()
            .is_some_and(|it| !it.is_empty())
        {
            return Err(wrong(format!(
                "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. \
                 Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )));
        }
        Ok(())
    }
}

fn wrong(why: impl Into<String>) -> TokenError {
    TokenError::Legacy(why.into())
}

/// Returns an object. Memory is looked into first, which may not know yet of one that was made just now.
async fn found(store: &Store, namespace: &str, name: &str) -> Result<Option<Value>, TokenError> {
    let cached = GetOptions {
        resource_version: Some(ResourceVersion(0)),
    };
    for options in [cached, GetOptions::default()] {
        match store.get(namespace, name, options).await {
            Ok(object) => {
                let tree = codec::tree(&object).map(Some);
                return tree
                    .map_err(|error| TokenError::Lookup(Error::Internal(error.to_string())));
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(TokenError::Lookup(error)),
        }
    }
    Ok(None)
}

/// Labels a Secret with the day on which its token was used, unless it has that label or, by another clock, the next
/// day's. A failure is logged, and the token is valid all the same.
async fn note_use(secrets: &Store, secret: &Value, clock: &Clock, now: Timestamp) {
    let day = |seconds: i64| {
        let time = Timestamp::from_second(now.as_second() + seconds).unwrap_or(now);
        time.strftime("%Y-%m-%d").to_string()
    };
    let (today, tomorrow) = (day(0), day(24 * 60 * 60));
    let metadata = &secret["metadata"];
    let last = metadata["labels"][LAST_USED].as_str().unwrap_or_default();
    if last == today || last == tomorrow {
        return;
    }
    let manager = "kube-apiserver".to_owned();
    let context = RequestContext::new(User::default(), manager, clock.clone());
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    let mut used = Used {
        uid: text("uid").to_owned(),
        today,
    };
    let options = UpdateOptions::default();
    let updated = secrets
        .update(
            &context,
            text("namespace"),
            text("name"),
            &mut used,
            &options,
        )
        .await;
    if let Err(error) = updated {
        tracing::warn!(%error, "cannot label a Secret with the last use of its token");
    }
}

/// The label of the last use of a Secret with a uid.
struct Used {
    uid: String,
    today: String,
}

#[async_trait]
impl UpdatedObject for Used {
    async fn updated(
        &mut self,
        _: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let mut secret = existing.cloned().unwrap_or_default();
        if secret["metadata"]["uid"] == self.uid {
            secret["metadata"]["labels"][LAST_USED] = json!(self.today);
        }
        Ok(secret)
    }
}
