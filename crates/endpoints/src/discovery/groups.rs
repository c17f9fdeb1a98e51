//! `/api`, `/apis` and `/apis/GROUP`: the groups and their versions.

use std::cmp::Reverse;
use std::sync::Arc;

use ringwatch_apimachinery::{GroupVersion, version_order};
use ringwatch_registry::{Resource, Store};
use ringwatch_resources::built_in;
use ringwatch_resources::local_priorities;
use serde_json::{Value, json};

use crate::aggregation::{AggregatedServer, AggregatedServers};

/// An API group in discovery, such as `apps`.
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
    /// The resources that the version has, and the server that serves them.
    pub(super) content: VersionResources,
}

/// The resources of a version of a group.
#[derive(Debug)]
pub(super) enum VersionResources {
    /// Resources of this server, by name.
    Local(Vec<Arc<Resource>>),
    /// Resources that another server serves.
    Aggregated(Arc<AggregatedServer>),
}

impl Group {
    /// Returns the key by which groups are ordered: the highest priority first, then the name where they are not built
    /// in.
    fn place(&self) -> impl Ord {
        let priority = self.versions.iter().map(|it| it.priorities().0).max();
        let built_in = self.versions.iter().all(Version::is_built_in);
        (Reverse(priority), (!built_in).then_some(&self.name))
    }
}

impl Version {
    /// Returns true if its resources are built in.
    pub(super) fn is_built_in(&self) -> bool {
        match &self.content {
            VersionResources::Local(resources) => !resources.iter().any(|it| it.is_custom()),
            VersionResources::Aggregated(_) => false,
        }
    }

    /// Returns the priorities of its group and of itself.
    fn priorities(&self) -> (i64, i64) {
        match &self.content {
            VersionResources::Local(_) => local_priorities(&self.group_version),
            VersionResources::Aggregated(server) => {
                (server.api.group_priority, server.api.version_priority)
            }
        }
    }

    /// Returns the key by which the versions of a group are ordered.
    fn place(&self) -> impl Ord {
        let (_, priority) = self.priorities();
        let order = version_order(&self.group_version.version);
        (Reverse(priority), Reverse(order))
    }

    /// Returns the path of the version's discovery document, such as `/apis/apps/v1`.
    pub(super) fn path(&self) -> String {
        let prefix = if self.group_version.group.is_empty() {
            "/api"
        } else {
            "/apis"
        };
        format!("{prefix}/{}", self.group_version)
    }
}

/// Returns the groups: built-in ones in their order, then custom ones in the order of their resources; those of other
/// servers are ordered by the priorities in their APIServices. The versions of each come in the order in which clients
/// prefer them, as `DiscoveryController` of apiextensions sorts those of definitions.
pub(super) fn groups(
    stores: &[Arc<Store>],
    storeless: &[Arc<Resource>],
    servers: &AggregatedServers,
) -> Vec<Group> {
    let mut groups = local(stores, storeless);
    for server in servers.iter() {
        let version = Version {
            group_version: server.api.group_version.clone(),
            content: VersionResources::Aggregated(Arc::clone(server)),
        };
        let group = of_name(&mut groups, &version.group_version.group);
        // Resources of this server in that group version are not reachable.
        let same = &version.group_version;
        group.versions.retain(|it| it.group_version != *same);
        group.versions.push(version);
    }
    for group in &mut groups {
        group
            .versions
            .sort_by(|one, other| one.place().cmp(&other.place()));
    }
    if servers.iter().next().is_some() {
        groups.sort_by(|one, other| one.place().cmp(&other.place()));
    }
    groups
}

fn local(stores: &[Arc<Store>], storeless: &[Arc<Resource>]) -> Vec<Group> {
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
        let group = of_name(&mut groups, &resource.group_version.group);
        add(group, resource);
    }
    groups
}

/// Returns the group of a name; a new one is added at the end.
fn of_name<'a>(groups: &'a mut Vec<Group>, name: &str) -> &'a mut Group {
    let at = groups.iter().position(|it| it.name == name);
    let at = at.unwrap_or_else(|| {
        groups.push(Group {
            name: name.to_owned(),
            versions: Vec::new(),
        });
        groups.len() - 1
    });
    &mut groups[at]
}

fn add(group: &mut Group, resource: &Arc<Resource>) {
    let known = group
        .versions
        .iter_mut()
        .find(|it| it.group_version == resource.group_version);
    if let Some(VersionResources::Local(resources)) = known.map(|it| &mut it.content) {
        resources.push(Arc::clone(resource));
        resources.sort_by(|one, other| one.plural.cmp(&other.plural));
        return;
    }
    group.versions.push(Version {
        group_version: resource.group_version.clone(),
        content: VersionResources::Local(vec![Arc::clone(resource)]),
    });
}

/// Returns the body of `/api`: an APIVersions with the versions of the core group.
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

/// Returns the body of `/apis`: an APIGroupList of all groups but the core.
pub(super) fn group_list(groups: &[Group]) -> Vec<u8> {
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(group_value).collect();
    let document = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
    document.to_string().into_bytes()
}

/// Returns the body of `/apis/GROUP`: an APIGroup.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_to_prefer_the_newest_stable_version() {
        let resource = |version: &str| {
            let mut resource = Resource::clone(&built_in()[0]);
            resource.group_version = GroupVersion::new("example.com", version);
            Arc::new(resource)
        };
        let resources = ["v1beta1", "v1", "v1alpha1", "v2", "v1beta2"].map(resource);
        let groups = groups(&[], &resources, &AggregatedServers::default());
        let found = group_value(&groups[0]);
        assert_eq!(found["preferredVersion"]["version"], "v2");
        let versions = groups[0].versions.iter();
        let versions: Vec<_> = versions
            .map(|it| it.group_version.version.as_str())
            .collect();
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1"]);
    }
}
