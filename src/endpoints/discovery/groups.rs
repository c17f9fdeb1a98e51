//! `/api`, `/apis` and `/apis/GROUP`: the groups and their versions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::registry::resources::built_in;
use crate::registry::{GroupVersion, Resource, Store};

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    /// Its name; empty for the core.
    pub(super) name: String,
    /// Its versions, the preferred one first.
    pub(super) versions: Vec<Version>,
}

/// A version of a group.
#[derive(Debug)]
pub(super) struct Version {
    /// Its group and name.
    pub(super) group_version: GroupVersion,
    /// Its resources by name.
    pub(super) resources: Vec<Arc<Resource>>,
}

impl Version {
    /// Where it is.
    pub(super) fn path(&self) -> String {
        let prefix = if self.group_version.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        format!("{prefix}/{}", self.group_version)
    }
}

/// The groups in the order of the built-in ones; others follow as their resources do.
pub(super) fn groups(stores: &[Arc<Store>], storeless: &[Arc<Resource>]) -> Vec<Group> {
    let stored = stores.iter().map(|store| store.resource());
    let order = built_in();
    let rank = |resource: &&Arc<Resource>| {
        let group = &resource.group_version.group;
        let at = order.iter().position(|it| it.group_version.group == *group);
        at.unwrap_or(usize::MAX)
    };
    let mut resources: Vec<&Arc<Resource>> = stored.chain(storeless).collect();
    resources.sort_by_cached_key(rank);
    let mut groups: Vec<Group> = Vec::new();
    for resource in resources {
        let name = &resource.group_version.group;
        let at = groups.iter().position(|it| it.name == *name);
        let at = at.unwrap_or_else(|| {
            groups.push(Group {
                name: name.clone(),
                versions: Vec::new(),
            });
            groups.len() - 1
        });
        add(&mut groups[at], resource);
    }
    groups
}

fn add(group: &mut Group, resource: &Arc<Resource>) {
    let known = group
        .versions
        .iter_mut()
        .find(|it| it.group_version == resource.group_version);
    let Some(version) = known else {
        group.versions.push(Version {
            group_version: resource.group_version.clone(),
            resources: vec![Arc::clone(resource)],
        });
        return;
    };
    version.resources.push(Arc::clone(resource));
    version
        .resources
        .sort_by(|one, other| one.plural.cmp(&other.plural));
}

/// `/api`.
pub(super) fn api_versions(groups: &[Group], server_address: &str) -> Vec<u8> {
    let core = groups.iter().filter(|group| group.name.is_empty());
    let versions: Vec<&str> = core
        .flat_map(|group| &group.versions)
        .map(|version| version.group_version.version.as_str())
        .collect();
    let document = json!({"kind": "APIVersions", "versions": versions,
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]});
    document.to_string().into_bytes()
}

/// `/apis`.
pub(super) fn group_list(groups: &[Group]) -> Vec<u8> {
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(group_value).collect();
    let document = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
    document.to_string().into_bytes()
}

/// `/apis/GROUP`.
pub(super) fn group(group: &Group) -> Vec<u8> {
    let mut document = group_value(group);
    document["kind"] = json!("APIGroup");
    document["apiVersion"] = json!("v1");
    document.to_string().into_bytes()
}

fn group_value(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({"groupVersion": version.group_version.to_string(),
                "version": version.group_version.version})
        })
        .collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}
