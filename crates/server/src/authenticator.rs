//! Builds the authenticator from the files of flags, and the stores of the objects that tokens are in or bound to.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch_authentication::oidc::Anonymous;
use ringwatch_authentication::service_accounts::{
    AccountStores, ServiceAccountConfig, ServiceAccountTokens,
};
use ringwatch_authentication::{
    Authenticator, BootstrapTokens, TokenFile, TokenWebhook, TokenWebhookConfig,
};
use ringwatch_registry::Stores;

use super::flags::ServeFlags;
use super::resources::Resources;

/// The parts of an authenticator that files and flags make, but for issuers that may change.
#[derive(Debug)]
pub(super) struct AuthenticationFiles {
    /// The tokens of `--token-auth-file`.
    pub(super) tokens: TokenFile,
    /// The webhook that is asked about tokens; `None` if there is none.
    pub(super) webhook: Option<TokenWebhookConfig>,
    /// The requests that are served without credentials.
    pub(super) anonymous: Anonymous,
}

impl AuthenticationFiles {
    /// Builds the authenticator, which verifies tokens of service accounts as `config` says. They are accepted if there are
    /// stores of the objects that these tokens are bound to.
    #[must_use]
    pub(super) fn build(
        self,
        config: &ServiceAccountConfig,
        flags: &ServeFlags,
        resources: &Resources,
        clock: &Clock,
        registry: &mut Registry,
    ) -> Arc<Authenticator> {
        let all = &resources.stores;
        let bootstrap_tokens = all.get("", "secrets").cloned().map(BootstrapTokens::new);
        let webhook = self.webhook.map(|config| {
            TokenWebhook::new(config, Arc::clone(&resources.webhooks), clock.clone())
        });
        let authenticator = Authenticator::new(self.tokens)
            .with_audiences(config.audiences.clone())
            .with_bootstrap_tokens(
                bootstrap_tokens.filter(|_| flags.identity.enable_bootstrap_token_auth),
            )
            .with_webhook(webhook)
            .with_request_headers(flags.aggregation.request_header.request_headers())
            .with_anonymous(self.anonymous);
        authenticator.register(registry);
        Arc::new(match account_stores(all) {
            Some(stores) => authenticator.with_service_accounts(ServiceAccountTokens::new(
                config,
                stores,
                clock.clone(),
            )),
            None => authenticator,
        })
    }
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
