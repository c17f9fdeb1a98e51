//! OpenAPI v3: what paths there are, with their parameters and kinds.
//!
//! kubectl reads it before it creates from a file, to learn whether the server validates fields.
//! Schemas of the kinds are not part of it yet: objects are described as open objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::registry::{GroupVersion, Resource, Store, Subresource, Verb};

/// Where the index is; the document of a group version is below it.
pub(super) const INDEX: &str = "/openapi/v3";

/// The index and the document of every group version of these stores, by their paths.
pub(super) fn documents(stores: &[Arc<Store>], git_version: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for store in stores {
        let resource = store.resource();
        let root = root_of(resource);
        let own = resource_paths(&root, resource);
        paths.entry(root).or_default().extend(own);
    }
    let mut index = Map::new();
    let mut documents = Vec::new();
    for (root, paths) in paths {
        let document = json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": git_version},
            "paths": paths,
            "components": {"schemas": {}},
        });
        let document = document.to_string().into_bytes();
        let path = format!("{INDEX}/{root}");
        let url = format!("{path}?hash={}", hash(&document));
        index.insert(root, json!({"serverRelativeURL": url}));
        documents.push((path, document));
    }
    let index = json!({"paths": index}).to_string().into_bytes();
    documents.push((INDEX.to_owned(), index));
    documents
}

/// By what clients know that a document has changed.
fn hash(document: &[u8]) -> String {
    let digest = Sha512::digest(document);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// `api/v1` or `apis/apps/v1`.
fn root_of(resource: &Resource) -> String {
    let group_version = &resource.group_version;
    if group_version.group.is_empty() {
        format!("api/{group_version}")
    } else {
        format!("apis/{group_version}")
    }
}

fn resource_paths(root: &str, resource: &Resource) -> Vec<(String, Value)> {
    let collection = if resource.namespaced {
        format!("/{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("/{root}/{}", resource.plural)
    };
    let object = format!("{collection}/{{name}}");
    let kind = kind_of(&resource.group_version, &resource.kind);
    let mut paths = Vec::new();
    if resource.namespaced && resource.verbs.contains(&Verb::List) {
        let all = json!({"get": operation(Verb::List, &kind)});
        paths.push((format!("/{root}/{}", resource.plural), all));
    }
    let verbs = [Verb::List, Verb::Create, Verb::DeleteCollection];
    paths.push((
        collection,
        path_item(&resource.verbs, &verbs, &kind, resource.namespaced, false),
    ));
    let verbs = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    paths.push((
        object.clone(),
        path_item(&resource.verbs, &verbs, &kind, resource.namespaced, true),
    ));
    for subresource in &resource.subresources {
        paths.push((
            format!("{object}/{}", subresource.name),
            subresource_item(resource, subresource),
        ));
    }
    paths
}

fn subresource_item(resource: &Resource, subresource: &Subresource) -> Value {
    let own = &resource.group_version;
    let group_version = subresource.group_version.as_ref().unwrap_or(own);
    let kind = kind_of(group_version, &subresource.kind);
    let verbs = [Verb::Get, Verb::Create, Verb::Update, Verb::Patch];
    path_item(&subresource.verbs, &verbs, &kind, resource.namespaced, true)
}

fn kind_of(group_version: &GroupVersion, kind: &str) -> Value {
    let GroupVersion { group, version } = group_version;
    json!({"group": group, "version": version, "kind": kind})
}

/// The operations of a path: those of `candidates` that the resource has.
fn path_item(
    verbs: &[Verb],
    candidates: &[Verb],
    kind: &Value,
    namespaced: bool,
    named: bool,
) -> Value {
    let mut item = Map::new();
    for verb in candidates.iter().filter(|verb| verbs.contains(verb)) {
        item.insert(method(*verb).to_owned(), operation(*verb, kind));
    }
    let mut parameters = Vec::new();
    if named {
        parameters.push(path_parameter("name", "name of the object"));
    }
    if namespaced {
        parameters.push(path_parameter("namespace", "object name and auth scope"));
    }
    item.insert("parameters".to_owned(), Value::Array(parameters));
    Value::Object(item)
}

fn operation(verb: Verb, kind: &Value) -> Value {
    let parameters: Vec<Value> = query_parameters(verb)
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind}}))
        .collect();
    json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action(verb),
        "x-kubernetes-group-version-kind": kind,
    })
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string", "uniqueItems": true},
    })
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => "get",
        Verb::Create => "post",
        Verb::Update => "put",
        Verb::Patch => "patch",
        Verb::Delete | Verb::DeleteCollection => "delete",
    }
}

fn action(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Update => "put",
        other => other.name(),
    }
}

/// The query parameters that an operation understands, and their types.
fn query_parameters(verb: Verb) -> &'static [(&'static str, &'static str)] {
    match verb {
        Verb::Get => &[("pretty", "string"), ("resourceVersion", "string")],
        Verb::List | Verb::Watch => LIST_PARAMETERS,
        Verb::Create | Verb::Update => WRITE_PARAMETERS,
        Verb::Patch => PATCH_PARAMETERS,
        Verb::Delete | Verb::DeleteCollection => DELETE_PARAMETERS,
    }
}

const LIST_PARAMETERS: &[(&str, &str)] = &[
    ("pretty", "string"),
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const WRITE_PARAMETERS: &[(&str, &str)] = &[
    ("pretty", "string"),
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];

const PATCH_PARAMETERS: &[(&str, &str)] = &[
    ("pretty", "string"),
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];

const DELETE_PARAMETERS: &[(&str, &str)] = &[
    ("pretty", "string"),
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
