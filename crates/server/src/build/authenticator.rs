//! Builds the authenticator from the files of flags, and the stores of the objects that tokens are in or bound to.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch_authentication::service_accounts::{
    AccountStores, ServiceAccountConfig, ServiceAccountTokens,
};
use ringwatch_authentication::{Authenticator, BootstrapTokens, TokenWebhook};
use ringwatch_registry::Stores;

use super::resources::Resources;
use crate::config::flags::ServeFlags;
use crate::config::security::AuthenticationFiles;

/// Builds the authenticator, which verifies tokens of service accounts as `config` says. They are accepted if there are
/// stores of the objects that these tokens are bound to.
#[must_use]
pub(crate) fn authenticator(
    files: AuthenticationFiles,
    config: &ServiceAccountConfig,
    flags: &ServeFlags,
    resources: &Resources,
    clock: &Clock,
) -> Arc<Authenticator> {
    let all = &resources.stores;
    let bootstrap_tokens = all.get("", "secrets").cloned().map(BootstrapTokens::new);
    let webhook = files
        .webhook
        .map(|config| TokenWebhook::new(config, Arc::clone(&resources.webhooks), clock.clone()));
    let authenticator = Authenticator::new(files.tokens)
        .with_audiences(config.audiences.clone())
        .with_bootstrap_tokens(
            bootstrap_tokens.filter(|_| flags.identity.enable_bootstrap_token_auth),
        )
        .with_webhook(webhook)
        .with_request_headers(flags.aggregation.request_header.request_headers())
        .with_anonymous(files.anonymous);
    Arc::new(match account_stores(all) {
        Some(stores) => authenticator.with_service_accounts(ServiceAccountTokens::new(
            config,
            stores,
            clock.clone(),
        )),
        None => authenticator,
    })
}

fn account_stores(all: &Stores) -> Option<AccountStores> {
    let store = |plural| all.get("", plural).cloned();
    Some(AccountStores {
        accounts: store("serviceaccounts")?,
        pods: store("pods")?,
        secrets: store("secrets")?,
        nodes: store("nodes")?,
    })
}
