//! Which plugins have their say in writes, and what each is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::registry::Store;
use crate::registry::admission::{
    Chain, DefaultClass, LimitRanger, NamespaceLifecycle, Plugin, PluginSet, Priority,
    ResourceQuota, ServiceAccount, StorageProtection,
};
use crate::storage::Interface;

/// The plugins of the set, over the storages of what they look up, by the prefix of their keys. Quotas are also written,
/// in a store of their own that asks no plugin.
pub(super) fn chain(
    set: &PluginSet,
    by_prefix: &BTreeMap<String, Arc<dyn Interface>>,
    quotas: Option<Store>,
    clock: &Clock,
) -> Chain {
    let mut plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(StorageProtection)];
    let over = |prefix| by_prefix.get(prefix).cloned();
    plugins.extend(over("namespaces").map(|namespaces| {
        Arc::new(NamespaceLifecycle::new(namespaces, clock.clone())) as Arc<dyn Plugin>
    }));
    plugins
        .extend(over("priorityclasses").map(|it| Arc::new(Priority::new(it)) as Arc<dyn Plugin>));
    plugins.extend(
        over("serviceaccounts").map(|it| Arc::new(ServiceAccount::new(it)) as Arc<dyn Plugin>),
    );
    plugins.extend(over("limitranges").map(|it| Arc::new(LimitRanger::new(it)) as Arc<dyn Plugin>));
    plugins.extend(
        over("storageclasses").map(|it| Arc::new(DefaultClass::of_storage(it)) as Arc<dyn Plugin>),
    );
    plugins.extend(
        over("ingressclasses")
            .map(|it| Arc::new(DefaultClass::of_ingresses(it)) as Arc<dyn Plugin>),
    );
    plugins.extend(quotas.map(|it| Arc::new(ResourceQuota::new(it)) as Arc<dyn Plugin>));
    plugins.retain(|plugin| set.has(plugin.name()));
    Chain::new(plugins)
}
