//! The served types and the storages of their objects.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ringwatch::storage::Interface;
use ringwatch_registry::Resource;

/// A resource, and the storage of its objects as they are served there.
pub type ServedType = (Arc<Resource>, Arc<dyn Interface>);

/// All types that are served.
#[derive(Debug)]
pub struct ServedTypes {
    built_in: Vec<ServedType>,
    custom: ArcSwap<Vec<ServedType>>,
}

impl ServedTypes {
    /// Makes the types that are served from the start.
    #[must_use]
    pub fn new(built_in: Vec<ServedType>) -> Self {
        Self {
            built_in,
            custom: ArcSwap::default(),
        }
    }

    /// Replaces the custom resources that are served beside the built-in ones.
    pub fn set_custom(&self, custom: Vec<ServedType>) {
        self.custom.store(Arc::new(custom));
    }

    /// Returns the first other resource of the same objects that the predicate accepts.
    pub(super) fn equivalent(
        &self,
        resource: &Resource,
        is: impl Fn(&Resource) -> bool,
    ) -> Option<Arc<Resource>> {
        let found = self.find(|it| {
            it.storage_prefix == resource.storage_prefix
                && it.group_version != resource.group_version
                && is(it)
        });
        found.map(|(resource, _)| resource)
    }

    /// Returns the type of a kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<ServedType> {
        self.find(|it| it.kind == kind && it.group_version.to_string() == api_version)
    }

    fn find(&self, is: impl Fn(&Resource) -> bool) -> Option<ServedType> {
        let custom = self.custom.load();
        let mut all = self.built_in.iter().chain(custom.iter());
        all.find(|(resource, _)| is(resource)).cloned()
    }
}
