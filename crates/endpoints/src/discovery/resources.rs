//! `/api/v1` and `/apis/GROUP/VERSION`: the resources of a version.

use std::sync::Arc;

use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Subresource, Verb};
use serde_json::{Value, json};

/// Returns the body of `/apis/GROUP/VERSION`: an APIResourceList with the resources, their subresources and verbs.
pub(super) fn resource_list(version: &GroupVersion, resources: &[Arc<Resource>]) -> Vec<u8> {
    let mut resources: Vec<Value> = resources
        .iter()
        .flat_map(|resource| {
            let below = resource.subresources.iter();
            let below = below.map(|it| subresource_value(resource, it));
            std::iter::once(resource_value(resource)).chain(below)
        })
        .collect();
    resources.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    let mut document = json!({"kind": "APIResourceList",
        "groupVersion": version.to_string(), "resources": resources});
    // The core's list is older than the field.
    if !version.group.is_empty() {
        document["apiVersion"] = json!("v1");
    }
    document.to_string().into_bytes()
}

/// Returns the names of verbs, in their order.
pub(super) fn verb_names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}

fn resource_value(resource: &Resource) -> Value {
    let mut value = json!({"name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind,
        "verbs": verb_names(&resource.verbs)});
    if !resource.short_names.is_empty() {
        value["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        value["categories"] = json!(resource.categories);
    }
    if let Some(hash) = resource.storage_version_hash() {
        value["storageVersionHash"] = json!(hash);
    }
    value
}

fn subresource_value(resource: &Resource, subresource: &Subresource) -> Value {
    let name = format!("{}/{}", resource.plural, subresource.name);
    let mut value = json!({"name": name, "singularName": "", "namespaced": resource.namespaced,
        "kind": subresource.kind, "verbs": verb_names(&subresource.verbs)});
    if let Some(group_version) = &subresource.group_version {
        value["group"] = json!(group_version.group);
        value["version"] = json!(group_version.version);
    }
    value
}
