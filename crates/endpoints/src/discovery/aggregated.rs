//! Aggregated discovery v2: all groups with all their resources in one document.

use http::HeaderValue;
use ringwatch::codec;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Subresource};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::AggregatedDocument;
use super::groups::{Group, Version, VersionResources};
use super::resources::verb_names;
use crate::negotiation::Clause;

/// The Content-Type of the document.
pub(super) const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The Content-Type of the document in protobuf.
pub(super) const AGGREGATED_PROTOBUF_MEDIA_TYPE: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns true if a clause of the Accept header asks for aggregated discovery.
pub(super) fn is_wanted(clause: &Clause) -> bool {
    clause.parameter("as") == Some("APIGroupDiscoveryList")
        && clause.parameter("g") == Some("apidiscovery.k8s.io")
        && clause.parameter("v") == Some("v2")
}

/// Encodes the aggregated document of the core group alone, or of all other groups.
pub(super) fn document(groups: &[Group], core: bool) -> AggregatedDocument {
    let items: Vec<Value> = groups
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(group_value)
        .collect();
    let document = json!({"kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    let json = document.to_string().into_bytes();
    let digest: String = Sha512::digest(&json)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let etag = HeaderValue::from_str(&format!("\"{digest}\""));
    AggregatedDocument {
        json: json.into(),
        protobuf: codec::encode_value(&document).unwrap_or_default().into(),
        etag: etag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
    }
}

fn group_value(group: &Group) -> Value {
    let versions: Vec<Value> = group.versions.iter().map(version_value).collect();
    let metadata = if group.name.is_empty() {
        json!({})
    } else {
        json!({"name": group.name})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn version_value(version: &Version) -> Value {
    let name = &version.group_version.version;
    let (resources, freshness) = match &version.content {
        VersionResources::Local(resources) => {
            let resources: Vec<Value> = resources.iter().map(|it| resource_value(it)).collect();
            (json!(resources), "Current")
        }
        VersionResources::Aggregated(server) if server.is_stale => {
            (json!(*server.resources), "Stale")
        }
        VersionResources::Aggregated(server) => (json!(*server.resources), "Current"),
    };
    let mut value = json!({"version": name, "freshness": freshness});
    if resources.as_array().is_some_and(|it| !it.is_empty()) {
        value["resources"] = resources;
    }
    value
}

fn resource_value(resource: &Resource) -> Value {
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    // Custom resources have group and version set.
    let shown = resource.is_custom().then_some(&resource.group_version);
    let mut value = json!({"resource": resource.plural,
        "responseKind": kind_value(shown, &resource.kind), "scope": scope,
        "singularResource": resource.singular, "verbs": verb_names(&resource.verbs)});
    if !resource.short_names.is_empty() {
        value["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        value["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let mut below: Vec<&Subresource> = resource.subresources.iter().collect();
        if !resource.is_custom() {
            below.sort_by(|one, other| one.name.cmp(&other.name));
        }
        let below = below.into_iter().map(|it| subresource_value(it, shown));
        let below: Vec<Value> = below.collect();
        value["subresources"] = json!(below);
    }
    value
}

fn subresource_value(subresource: &Subresource, shown: Option<&GroupVersion>) -> Value {
    let group_version = subresource.group_version.as_ref().or(shown);
    let kind = kind_value(group_version, &subresource.kind);
    json!({"subresource": subresource.name, "responseKind": kind,
        "verbs": verb_names(&subresource.verbs)})
}

/// Returns a GroupVersionKind; group and version are left empty if they are those of the resource.
fn kind_value(group_version: Option<&GroupVersion>, kind: &str) -> Value {
    let (group, version) = group_version.map_or(("", ""), |it| (&it.group, &it.version));
    json!({"group": group, "version": version, "kind": kind})
}
