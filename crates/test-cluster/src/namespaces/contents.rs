//! Deletes the objects in a namespace, and tells what is left.

use std::collections::BTreeMap;

use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::finalizers;
use ringwatch_registry::{DeleteOptions, PropagationPolicy, RequestContext, Store};

use crate::ServedStores;

/// The contents of a namespace that are left after an attempt to delete them all.
#[derive(Debug, Default)]
pub(super) struct RemainingContents {
    /// The number of objects of each resource, by its name, a dot and its group.
    pub(super) objects: BTreeMap<String, usize>,
    /// The number of objects that have each finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// The definitions whose objects cannot be listed yet.
    pub(super) unserved: Vec<String>,
    /// The errors, each of a resource whose objects could not be deleted or listed.
    pub(super) errors: Vec<String>,
}

impl RemainingContents {
    /// Returns true if the namespace is empty.
    pub(super) fn is_nothing(&self) -> bool {
        self.objects.is_empty() && self.unserved.is_empty() && self.errors.is_empty()
    }
}

/// Deletes the objects in a namespace: pods, and once none is left all others. An error of one type is no reason to
/// leave the others.
pub(super) async fn delete(
    context: &RequestContext,
    stores: &ServedStores,
    name: &str,
) -> RemainingContents {
    let mut left = RemainingContents::default();
    let types = stores.deletable();
    let (pods, others): (Vec<_>, Vec<_>) = types
        .iter()
        .filter(|store| store.resource().namespaced)
        .partition(|store| is_of_pods(store));
    for store in pods {
        delete_of(context, store, name, &mut left).await;
    }
    if left.objects.is_empty() {
        for store in others {
            delete_of(context, store, name, &mut left).await;
        }
    }
    if left.is_nothing() {
        match stores.missing(&types).await {
            Ok(missing) => left.unserved = missing,
            Err(error) => left.errors.push(error.to_string()),
        }
    }
    left
}

async fn delete_of(
    context: &RequestContext,
    store: &Store,
    namespace: &str,
    left: &mut RemainingContents,
) {
    if let Err(error) = try_delete_of(context, store, namespace, left).await {
        left.errors.push(error.to_string());
    }
}

async fn try_delete_of(
    context: &RequestContext,
    store: &Store,
    namespace: &str,
    left: &mut RemainingContents,
) -> Result<(), Error> {
    // The collector must not orphan what goes with the namespace.
    let options = DeleteOptions {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteOptions::default()
    };
    let all = ListOptions::default;
    if store.list(namespace, all()).await?.items.is_empty() {
        return Ok(());
    }
    let deleted = store.delete_collection(context, namespace, options, all());
    deleted.await?;
    let items = store.list(namespace, all()).await?.items;
    if items.is_empty() {
        return Ok(());
    }
    let resource = store.resource();
    let name = format!("{}.{}", resource.plural, resource.group_version.group);
    left.objects.insert(name, items.len());
    for item in items {
        for finalizer in finalizers(&store.served_value(&item)?) {
            *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    Ok(())
}

fn is_of_pods(store: &Store) -> bool {
    let resource = store.resource();
    resource.group_version.group.is_empty() && resource.plural == "pods"
}
