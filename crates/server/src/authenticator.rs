//! Builds the authenticator from the flags and the stores of the objects that tokens are bound to.

use ringwatch_authentication::service_accounts::{
    AccountStores, ServiceAccountConfig, ServiceAccountTokens,
};
use ringwatch_authentication::{Authenticator, TokenFile};
use ringwatch_registry::Stores;

/// Builds the authenticator. Service accounts are accepted if there are stores of the objects that their tokens are bound
/// to.
#[must_use]
pub(super) fn authenticator(
    tokens: TokenFile,
    config: &ServiceAccountConfig,
    all: &Stores,
) -> Authenticator {
    let authenticator = Authenticator::new(tokens).with_audiences(config.audiences.clone());
    let store = |plural| all.get("", plural).cloned();
    let stores = || {
        Some(AccountStores {
            accounts: store("serviceaccounts")?,
            pods: store("pods")?,
            secrets: store("secrets")?,
            nodes: store("nodes")?,
        })
    };
    match stores() {
        Some(stores) => {
            authenticator.with_service_accounts(ServiceAccountTokens::new(config, stores))
        }
        None => authenticator,
    }
}
