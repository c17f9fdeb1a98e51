//! The stores of everything that is served now, custom resources among it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::{Error, path};
use ringwatch_registry::{Resource, ServedBy, Store, Stores, Verb};
use serde_json::Value;
use tokio::sync::watch;

/// The group and the plural of the definitions of custom resources.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The stores of the built-in resources, and those of the custom resources as they come and go.
///
/// Objects that other servers keep, behind aggregated APIs, are not among them.
#[derive(Clone, Debug)]
pub struct ServedStores {
    built_in: Stores,
    custom: watch::Receiver<Vec<Arc<Store>>>,
}

impl ServedStores {
    /// Makes the stores of the built-in resources and of the custom resources that the channel has last.
    #[must_use]
    pub fn new(built_in: Stores, custom: watch::Receiver<Vec<Arc<Store>>>) -> Self {
        Self { built_in, custom }
    }

    /// Returns the store of a built-in resource, named by group and plural; `None` if it is not served.
    pub(crate) fn built_in(&self, group: &str, plural: &str) -> Option<&Arc<Store>> {
        self.built_in.get(group, plural)
    }

    /// Returns a store for each type whose objects can be listed, watched and deleted: of several versions the one in
    /// which they are stored, if it is served.
    pub(crate) fn deletable(&self) -> Vec<Arc<Store>> {
        let custom = self.custom.borrow();
        let mut types = BTreeMap::new();
        for store in self.built_in.iter().chain(custom.iter()) {
            let resource = store.resource();
            if !is_deletable(resource) {
                continue;
            }
            let is_stored = resource.group_version == resource.storage_version;
            let chosen = types.entry(&resource.storage_prefix).or_insert(store);
            if is_stored {
                *chosen = store;
            }
        }
        types.into_values().map(Arc::clone).collect()
    }

    /// Returns the names of the accepted definitions of which there is no store among these. There are some until this
    /// server serves what another one of the same etcd has accepted; then nothing can be said to be gone.
    ///
    /// # Errors
    /// An error of the store of the definitions.
    pub(crate) async fn missing(&self, types: &[Arc<Store>]) -> Result<Vec<String>, Error> {
        let (group, plural) = DEFINITIONS;
        let Some(definitions) = self.built_in(group, plural) else {
            return Ok(Vec::new());
        };
        let served = types.iter().map(|store| store.resource().qualified_name());
        let served: BTreeSet<String> = served.collect();
        let mut missing = Vec::new();
        for definition in definitions.list("", ListOptions::default()).await?.items {
            // Only those that are not served are decoded.
            if !served.contains(definition.name())
                && is_accepted(&definitions.served_value(&definition)?)
            {
                missing.push(definition.name().to_owned());
            }
        }
        Ok(missing)
    }

    /// Returns the store of a kind in a version; `None` if it is not served.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Store>> {
        let custom = self.custom.borrow();
        let mut all = self.built_in.iter().chain(custom.iter());
        let found = all.find(|store| {
            let resource = store.resource();
            resource.kind == kind && resource.group_version.to_string() == api_version
        });
        found.cloned()
    }

    /// Returns the receiver that tells of new custom resources.
    pub(crate) fn changes(&self) -> watch::Receiver<Vec<Arc<Store>>> {
        self.custom.clone()
    }
}

/// Returns true if the resources of a definition are to be served.
fn is_accepted(definition: &Value) -> bool {
    let mut conditions = path::list(definition, "status.conditions").iter();
    let mut versions = path::list(definition, "spec.versions").iter();
    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
        && versions.any(|it| it["served"] == true)
}

fn is_deletable(resource: &Resource) -> bool {
    let has = |verb| resource.verbs.contains(&verb);
    resource.served == ServedBy::Store && has(Verb::List) && has(Verb::Watch) && has(Verb::Delete)
}
