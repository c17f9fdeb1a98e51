//! Which plugins have their say in writes, and what each is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::registry::admission::{
    Chain, NamespaceLifecycle, Plugin, PluginSet, Priority, ServiceAccount,
};
use crate::storage::Interface;

/// The plugins of the set, over the storages of what they look up, by the prefix of their keys.
pub(super) fn chain(
    set: &PluginSet,
    by_prefix: &BTreeMap<String, Arc<dyn Interface>>,
    clock: &Clock,
) -> Chain {
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    if let Some(namespaces) = by_prefix.get("namespaces") {
        let namespaces = Arc::clone(namespaces);
        plugins.push(Arc::new(NamespaceLifecycle::new(namespaces, clock.clone())));
    }
    if let Some(classes) = by_prefix.get("priorityclasses") {
        plugins.push(Arc::new(Priority::new(Arc::clone(classes))));
    }
    if let Some(accounts) = by_prefix.get("serviceaccounts") {
        plugins.push(Arc::new(ServiceAccount::new(Arc::clone(accounts))));
    }
    plugins.retain(|plugin| set.has(plugin.name()));
    Chain::new(plugins)
}
