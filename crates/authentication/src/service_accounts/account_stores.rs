//! The stores in which the objects are found that service account tokens depend on.

use std::sync::Arc;

use ringwatch_registry::Store;

/// The stores of service accounts, and of the objects that tokens may be bound to.
#[derive(Clone, Debug)]
pub struct AccountStores {
    /// The store of ServiceAccounts.
    pub accounts: Arc<Store>,
    /// The store of Pods, which tokens may be bound to.
    pub pods: Arc<Store>,
    /// The store of Secrets, which tokens may be bound to.
    pub secrets: Arc<Store>,
    /// The store of Nodes, which tokens may be bound to.
    pub nodes: Arc<Store>,
}
