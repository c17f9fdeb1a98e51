//! Routes requests to the stores of resources.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Store, Verb};

use super::errors::Failure;
use super::request_info::RequestInfo;

/// The routes to all served resources, by group, version and plural name.
#[derive(Debug)]
pub(super) struct Routes {
    /// The stores by group, version and plural name.
    stores: HashMap<(GroupVersion, String), Arc<Store>>,
    /// The resources without a store, such as reviews.
    storeless: HashMap<(GroupVersion, String), Arc<Resource>>,
    /// The groups and versions that are served.
    versions: HashSet<GroupVersion>,
    /// The groups and versions of custom resources among them.
    custom_versions: HashSet<GroupVersion>,
}

/// The target of a request.
#[derive(Debug)]
pub(super) enum Route<'a> {
    /// A store, and the verb of the request.
    Stored(&'a Arc<Store>, Verb),
    /// A review, which is answered without a store.
    Review(&'a Arc<Resource>),
}

/// The reason why no resource is found.
#[derive(Debug)]
pub(super) enum NoRoute {
    /// The group and version are not served.
    Nothing,
    /// The group and version are served, and refuse the path or the method.
    Refused(Failure),
}

impl Routes {
    /// Collects the routes to these resources.
    pub(super) fn new(stores: &[Arc<Store>], storeless: &[Arc<Resource>]) -> Self {
        let key = |resource: &Resource| (resource.group_version.clone(), resource.plural.clone());
        let resources = || {
            let stored = stores.iter().map(|store| store.resource());
            stored.chain(storeless)
        };
        Self {
            versions: resources().map(|it| it.group_version.clone()).collect(),
            custom_versions: resources()
                .filter(|it| it.is_custom())
                .map(|it| it.group_version.clone())
                .collect(),
            stores: stores
                .iter()
                .map(|store| (key(store.resource()), Arc::clone(store)))
                .collect(),
            storeless: storeless
                .iter()
                .map(|resource| (key(resource), Arc::clone(resource)))
                .collect(),
        }
    }

    /// Returns the store of a resource that requests to another one need, such as the node of a pod.
    ///
    /// # Errors
    /// 500 when it is not served.
    pub(super) fn needed(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<&Arc<Store>, Failure> {
        let key = (GroupVersion::new(group, version), plural.to_owned());
        let store = self.stores.get(&key);
        store.ok_or_else(|| Failure::internal(format!("{plural} are not served")))
    }

    /// Finds the target of a request.
    pub(super) fn find(&self, info: &RequestInfo) -> Result<Route<'_>, NoRoute> {
        let group_version = GroupVersion::new(&info.group, &info.version);
        if !self.versions.contains(&group_version) {
            return Err(NoRoute::Nothing);
        }
        // Only what is behind a proxy has paths of its own.
        let is_too_long = !info.rest.is_empty() && info.subresource != "proxy";
        if info.has_empty_segment || is_too_long {
            return Err(NoRoute::Refused(Failure::no_such_resource()));
        }
        let key = (group_version, info.resource.clone());
        if let Some(resource) = self.storeless.get(&key) {
            check_path(resource, info).map_err(NoRoute::Refused)?;
            return Ok(Route::Review(resource));
        }
        let Some(store) = self.stores.get(&key) else {
            // The paths of custom resources are those of their definitions alone.
            if self.custom_versions.contains(&key.0) {
                return Err(NoRoute::Nothing);
            }
            return Err(NoRoute::Refused(Failure::no_such_resource()));
        };
        let verb = check_path(store.resource(), info).map_err(NoRoute::Refused)?;
        Ok(Route::Stored(store, verb))
    }
}

/// Checks that the resource has such a path, and returns the verb of the request.
fn check_path(resource: &Resource, info: &RequestInfo) -> Result<Verb, Failure> {
    let across = resource.namespaced && !info.is_within_namespace;
    if info.is_within_namespace && !resource.namespaced || across && !info.name.is_empty() {
        return Err(Failure::no_such_resource());
    }
    let verbs = if info.subresource.is_empty() {
        &resource.verbs
    } else {
        let subresource = resource.subresource(&info.subresource);
        let subresource = subresource.ok_or_else(|| match resource.is_custom() {
            true => Failure::no_such_part(resource, &info.name),
            false => Failure::no_such_resource(),
        });
        &subresource?.verbs
    };
    let verb = verb_of(info).ok_or_else(Failure::method_not_allowed)?;
    let whole = info.name.is_empty() && matches!(verb, Verb::Create | Verb::DeleteCollection);
    let is_read = info.subresource.is_empty() && verbs.contains(&Verb::List);
    if !verbs.contains(&verb) && (verb == Verb::Watch && is_read || resource.is_custom()) {
        return Err(Failure::verb_not_supported(resource, verb));
    }
    if across && whole || !verbs.contains(&verb) {
        return Err(Failure::method_not_allowed());
    }
    Ok(verb)
}

/// Returns the verb of a request, if its path can have it.
fn verb_of(info: &RequestInfo) -> Option<Verb> {
    let named = !info.name.is_empty();
    let Some(verb) = info.verb.on_resource() else {
        // Proxies forward methods that have no verb.
        return (info.subresource == "proxy").then_some(Verb::Get);
    };
    let fits = match verb {
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => named,
        Verb::List | Verb::DeleteCollection => !named,
        Verb::Watch => true,
        Verb::Create => !named || !info.subresource.is_empty(),
    };
    fits.then_some(verb)
}
