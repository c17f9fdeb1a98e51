//! Tokens of service accounts that are kept in Secrets and do not expire.
//!
//! kube-controller-manager issues them. Follows pkg/serviceaccount/legacy.go of Kubernetes 1.36; the metrics and
//! warnings about their use are left out.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use ringwatch::meta::Object;
use ringwatch_apimachinery::service_account;
use serde::Deserialize;

use super::account_stores::AccountStores;
use crate::TokenError;
use crate::jwt::Audiences;
use crate::stored::{ObjectLookup, TokenSecret, find, newest};

/// The issuer of these tokens.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

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
    pub(super) fn check(&self) -> Result<(), TokenError> {
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

    /// Returns the Secret that has the token, of an account that exists.
    ///
    /// # Errors
    /// [`TokenError`] if the Secret or the account does not exist, is being deleted, or is another one.
    pub(super) async fn secret(
        &self,
        token: &str,
        stores: &AccountStores,
    ) -> Result<Arc<Object>, TokenError> {
        let Self {
            namespace,
            account,
            uid,
            ..
        } = self;
        let invalidated = || wrong("Token has been invalidated");
        let found = newest(&stores.secrets, namespace, &self.secret, |_| true).await?;
        let found = found.ok_or_else(invalidated)?;
        let secret = TokenSecret::new(&found)?;
        if secret.is_deleted() {
            return Err(invalidated());
        }
        if verify_slices_are_equal(&secret.data("token"), token.as_bytes()).is_err() {
            return Err(wrong("Token does not match server's copy"));
        }
        // Such a token ends at once when its account is to be deleted.
        match find(&stores.accounts, namespace, (account, uid), i64::MAX).await? {
            ObjectLookup::There => Ok(found),
            ObjectLookup::Gone => Err(TokenError::NoAccount(account.clone())),
            ObjectLookup::Deleted => {
                let why = format!("ServiceAccount {namespace}/{account} has been deleted");
                Err(wrong(why))
            }
            ObjectLookup::Other(other) => {
                let why = format!("ServiceAccount UID ({other}) does not match claim ({uid})");
                Err(wrong(why))
            }
        }
    }

    /// Checks that the Secret of the token is not marked invalid.
    pub(super) fn check_validity(&self, secret: &Object) -> Result<(), TokenError> {
        let since = secret.attributes().labels().get(INVALID_SINCE);
        if since.is_none_or(str::is_empty) {
            return Ok(());
        }
        let Self {
            namespace,
            secret: name,
            account,
            ..
        } = self;
        Err(wrong(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. \
             Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
             '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )))
    }
}

fn wrong(why: impl Into<String>) -> TokenError {
    TokenError::Legacy(why.into())
}
