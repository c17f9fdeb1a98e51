//! The stores of all resources that are served.

use std::slice;
use std::sync::Arc;

use super::Store;

/// The stores of all resources that are served, in the order of discovery.
#[derive(Clone, Debug, Default)]
pub struct Stores(Vec<Arc<Store>>);

impl Stores {
    /// Returns the store of a resource, named by group and plural.
    #[must_use]
    pub fn get(&self, group: &str, plural: &str) -> Option<&Arc<Store>> {
        self.iter().find(|store| {
            let resource = store.resource();
            resource.group_version.group == group && resource.plural == plural
        })
    }

    /// Iterates over the stores in the order of discovery.
    pub fn iter(&self) -> slice::Iter<'_, Arc<Store>> {
        self.0.iter()
    }
}

impl FromIterator<Arc<Store>> for Stores {
    fn from_iter<Items: IntoIterator<Item = Arc<Store>>>(stores: Items) -> Self {
        Self(stores.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Stores {
    type Item = &'a Arc<Store>;
    type IntoIter = slice::Iter<'a, Arc<Store>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
