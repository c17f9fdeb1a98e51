//! Discovery of another API server: its resources, from one document of all groups or from that of one version.
//!
//! Only the fields that this server understands are read, so that nothing else reaches clients.

use ringwatch_apimachinery::GroupVersion;
use serde::{Deserialize, Serialize};

/// A resource as aggregated discovery shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceDiscovery {
    resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_kind: Option<DiscoveredKind>,
    scope: String,
    singular_resource: String,
    #[serde(deserialize_with = "list")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SubresourceDiscovery {
    subresource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_kind: Option<DiscoveredKind>,
    #[serde(deserialize_with = "list")]
    verbs: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct DiscoveredKind {
    group: String,
    version: String,
    kind: String,
}

/// Deserializes a list; Go writes an empty one as null.
fn list<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The error of reading a discovery document of another server.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The document is not JSON of the expected form.
    #[error("not a document of discovery: {0}")]
    Json(#[from] serde_json::Error),
    /// The document describes another group or version than the one asked for.
    #[error("the document is about {0:?}")]
    Other(String),
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default, deserialize_with = "list")]
    items: Vec<DiscoveredGroup>,
}

#[derive(Deserialize)]
struct DiscoveredGroup {
    #[serde(default)]
    metadata: DiscoveredMetadata,
    #[serde(default, deserialize_with = "list")]
    versions: Vec<DiscoveredVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DiscoveredMetadata {
    name: String,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
    #[serde(default, deserialize_with = "list")]
    resources: Vec<ResourceDiscovery>,
}

/// Returns the resources of a group version in the document of all groups; `None` if that does not know it.
///
/// # Errors
/// [`DiscoveryError::Json`]
pub fn aggregated(
    document: &[u8],
    wanted: &GroupVersion,
) -> Result<Option<Vec<ResourceDiscovery>>, DiscoveryError> {
    let list: GroupList = serde_json::from_slice(document)?;
    let groups = list.items.into_iter();
    let mut versions = groups
        .filter(|group| group.metadata.name == wanted.group)
        .flat_map(|group| group.versions);
    let version = versions.find(|version| version.version == wanted.version);
    Ok(version.map(|version| version.resources))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    #[serde(default)]
    group_version: String,
    #[serde(default, deserialize_with = "list")]
    resources: Vec<LegacyResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LegacyResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    group: String,
    version: String,
    kind: String,
    #[serde(deserialize_with = "list")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "list")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "list")]
    categories: Vec<String>,
}

/// Returns the resources in the document of a group version.
///
/// # Errors
/// [`DiscoveryError`]
pub fn legacy(
    document: &[u8],
    wanted: &GroupVersion,
) -> Result<Vec<ResourceDiscovery>, DiscoveryError> {
    let list: ResourceList = serde_json::from_slice(document)?;
    if list.group_version != wanted.to_string() {
        return Err(DiscoveryError::Other(list.group_version));
    }
    let mut found: Vec<ResourceDiscovery> = Vec::new();
    for listed in list.resources {
        let (parent, subresource) = match listed.name.split_once('/') {
            Some((parent, subresource)) => (parent.to_owned(), Some(subresource.to_owned())),
            None => (listed.name.clone(), None),
        };
        let kind = Some(DiscoveredKind {
            group: listed.group,
            version: listed.version,
            kind: listed.kind,
        });
        let at = found.iter().position(|it| it.resource == parent);
        let at = at.unwrap_or_else(|| {
            let scope = if listed.namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            found.push(ResourceDiscovery {
                resource: parent,
                scope: scope.to_owned(),
                ..ResourceDiscovery::default()
            });
            found.len() - 1
        });
        let resource = &mut found[at];
        match subresource {
            Some(subresource) => resource.subresources.push(SubresourceDiscovery {
                subresource,
                response_kind: kind,
                verbs: listed.verbs,
            }),
            None => {
                resource.response_kind = kind;
                resource.singular_resource = listed.singular_name;
                resource.verbs = listed.verbs;
                resource.short_names = listed.short_names;
                resource.categories = listed.categories;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_documents_tell_the_same() {
        let wanted = GroupVersion::new("example.com", "v1");
        let list = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "other.com"}, "versions": [{"version": "v1", "resources": null}]},
            {"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": [
                {"resource": "gears", "scope": "Namespaced", "singularResource": "gear",
                    "responseKind": {"group": "", "version": "", "kind": "Gear"},
                    "verbs": ["get"], "shortNames": ["gr"], "surprise": [[[]]],
                    "subresources": [{"subresource": "status", "verbs": ["get"],
                        "responseKind": {"group": "", "version": "", "kind": "Gear"}}]}]}]}]});
        let found = aggregated(list.to_string().as_bytes(), &wanted);
        let found = found.expect("a document").expect("known");
        let single = json!({"groupVersion": "example.com/v1", "resources": [
            {"name": "gears/status", "namespaced": true, "kind": "Gear", "verbs": ["get"]},
            {"name": "gears", "singularName": "gear", "namespaced": true, "kind": "Gear",
                "verbs": ["get"], "shortNames": ["gr"], "categories": null}]});
        let listed = legacy(single.to_string().as_bytes(), &wanted);
        assert_eq!(listed.expect("a document"), found);
        let text = serde_json::to_string(&found).expect("JSON");
        assert!(!text.contains("surprise"), "{text}");
    }

    #[test]
    fn what_is_about_something_else_is_not_believed() {
        let wanted = GroupVersion::new("example.com", "v1");
        let other = br#"{"groupVersion": "apps/v1", "resources": [{"name": "deployments"}]}"#;
        let refused = legacy(other, &wanted);
        assert!(matches!(refused, Err(DiscoveryError::Other(it)) if it == "apps/v1"));
        assert!(matches!(aggregated(b"{\"items\": []}", &wanted), Ok(None)));
        for wrong in [&b"3"[..], b"", b"{\"items\": 3}", b"<html>"] {
            assert!(matches!(
                aggregated(wrong, &wanted),
                Err(DiscoveryError::Json(_))
            ));
        }
    }
}
