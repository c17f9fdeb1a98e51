//! The built-in resources that clients are served, which `--runtime-config` restricts. The server itself uses all.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Store};

use super::resources::Resources;
use crate::config::flags::RuntimeConfigFlags;

/// The built-in resources that clients are served, in the order of discovery.
pub(crate) struct EnabledResources {
    /// The stores of the resources that have one.
    pub(crate) stores: Vec<Arc<Store>>,
    /// The resources without a store.
    pub(crate) storeless: Vec<Arc<Resource>>,
}

impl EnabledResources {
    /// Selects the resources that the flag leaves.
    pub(crate) fn new(flags: &RuntimeConfigFlags, resources: &Resources) -> Self {
        let stores = resources.stores.iter().cloned();
        let storeless = resources.storages.storeless.iter().cloned();
        Self {
            stores: stores.filter(|it| flags.serves(it.resource())).collect(),
            storeless: storeless.filter(|it| flags.serves(it)).collect(),
        }
    }

    /// Returns their groups and versions.
    pub(crate) fn group_versions(&self) -> BTreeSet<GroupVersion> {
        let stored = self.stores.iter().map(|store| store.resource());
        let all = stored.chain(&self.storeless);
        all.map(|resource| resource.group_version.clone()).collect()
    }
}
