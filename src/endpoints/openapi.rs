//! OpenAPI v3: what paths there are, with their parameters and kinds.
//!
//! kubectl reads it before it creates from a file, to learn whether the server validates fields.
//! Schemas of the kinds are not part of it yet: objects are described as open objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::registry::{Resource, Store, Subresource, Verb};

/// The documents of all group versions, made once.
#[derive(Debug)]
pub(super) struct OpenApi {
    index: Bytes,
    documents: BTreeMap<String, Document>,
}

/// The document of one group version.
#[derive(Debug)]
pub(super) struct Document {
    /// JSON.
    pub(super) bytes: Bytes,
    /// The hash by which the index names it, and its entity tag.
    pub(super) hash: String,
}

impl OpenApi {
    /// The documents of what these stores serve, by a server of this version.
    pub(super) fn new(stores: &[Arc<Store>], git_version: &str) -> Self {
        let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for store in stores {
            let resource = store.resource();
            let root = root_of(resource);
            paths.entry(root.clone()).or_default().extend(resource_paths(&root, resource));
        }
        let documents: BTreeMap<_, _> = paths
            .into_iter()
            .map(|(root, paths)| {
                let document = json!({
                    "openapi": "3.0.0",
                    "info": {"title": "Kubernetes", "version": git_version},
                    "paths": paths,
                    "components": {"schemas": {}},
                });
                (root, Document::new(&document))
            })
            .collect();
        let entries: Map<String, Value> = documents
            .iter()
            .map(|(root, document)| {
                let url = format!("/openapi/v3/{root}?hash={}", document.hash);
                (root.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        Self { index: json!({"paths": entries}).to_string().into(), documents }
    }

    /// `/openapi/v3`: where the documents are.
    pub(super) fn index(&self) -> &Bytes {
        &self.index
    }

    /// The document at `/openapi/v3/{root}`, such as `api/v1` or `apis/apps/v1`.
    pub(super) fn document(&self, root: &str) -> Option<&Document> {
        self.documents.get(root)
    }
}

impl Document {
    fn new(document: &Value) -> Self {
        let text = document.to_string();
        let hash = Sha512::digest(&text).iter().map(|byte| format!("{byte:02X}")).collect();
        Self { bytes: text.into(), hash }
    }
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
    let kind = kind_of(&resource.group_version.group, &resource.group_version.version, &resource.kind);
    let mut paths = Vec::new();
    if resource.namespaced && resource.verbs.contains(&Verb::List) {
        let all = json!({"get": operation(Verb::List, &kind)});
        paths.push((format!("/{root}/{}", resource.plural), all));
    }
    let verbs = [Verb::List, Verb::Create, Verb::DeleteCollection];
    paths.push((collection, path_item(&resource.verbs, &verbs, &kind, resource.namespaced, false)));
    let verbs = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    paths.push((object.clone(), path_item(&resource.verbs, &verbs, &kind, resource.namespaced, true)));
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
    let kind = kind_of(&group_version.group, &group_version.version, &subresource.kind);
    let verbs = [Verb::Get, Verb::Create, Verb::Update, Verb::Patch];
    path_item(&subresource.verbs, &verbs, &kind, resource.namespaced, true)
}

fn kind_of(group: &str, version: &str, kind: &str) -> Value {
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
