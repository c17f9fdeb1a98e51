//! OpenAPI: the documents that tell clients every path, operation and schema, made of the resources that a server has.
//!
//! ```text
//!   Resource --operations--> PathItem --+-- v3, v2 --> Value --+-- JSON
//!                                       |                      +-- protobuf
//!   schemas.txt.gz --definitions--------+
//!   CustomResourceDefinition --custom---+
//! ```
//!
//! kubectl uses them for `explain`, to find supported features, and to merge patches. They are large and rarely
//! requested, so a document is built at the first request, step by step with yields between, and some are cached. The
//! hash in the index is computed from the inputs of a document, so that the index needs no documents.
//!
//! Answering the requests for them does not belong here; `ringwatch-endpoints` does that.

mod built_in;
mod cache;
mod custom;
mod discovery;
mod document;
mod form;
mod hash;
mod messages;
mod names;
mod operation_names;
mod operations;
mod parameters;
mod protobuf;
mod roots;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ringwatch::budget::Ledger;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_registry::{Resource, Store};

use self::built_in::BuiltIn;
use self::cache::DocumentCache;
use self::custom::CustomSchemas;
use self::document::Assembly;
pub use self::form::{OpenApiVersion, Syntax};

/// The path of the v2 document, which describes the whole API.
pub const V2: &str = "/openapi/v2";

/// The path of the index of the v3 documents; the document of a group version is below it.
pub const V3: &str = "/openapi/v3";

/// A cache of the finished documents that were asked for last.
#[derive(Debug)]
pub struct Documents(DocumentCache);

impl Documents {
    /// Creates an empty cache, whose documents count against the budget of this ledger.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        Self(DocumentCache::new(ledger))
    }
}

/// The parts of a server that its documents describe.
#[derive(Clone, Copy, Debug)]
pub struct ServedParts<'a> {
    /// The resources that have stores.
    pub stores: &'a [Arc<Store>],
    /// The resources that have none, such as reviews.
    pub storeless: &'a [Arc<Resource>],
    /// Other paths that the server has.
    pub paths: &'a [String],
    /// The program's own version.
    pub build: &'a str,
    /// The version of Kubernetes, major and minor.
    pub kubernetes: &'a str,
}

/// The API that the documents describe, and how to make them.
#[derive(Debug)]
pub struct OpenApi {
    /// The documents of v3 by their roots, such as `apis/apps/v1`.
    roots: BTreeMap<String, Root>,
    custom: CustomSchemas,
    /// The program's own version.
    build: String,
    /// The version of Kubernetes, such as `1.36`.
    version: String,
    /// The URLs of the documents of aggregated APIs, by their roots.
    remote: BTreeMap<String, String>,
}

/// The content of one document of v3.
#[derive(Debug)]
enum Root {
    /// The resources of a group version.
    Version(GroupVersion, Vec<Arc<Resource>>),
    /// The paths of discovery itself, such as `/apis/apps/`.
    Discovery,
}

/// A finished document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The hash of what it was made of.
    pub hash: String,
    /// Its bytes.
    pub content: Bytes,
}

/// A document of v3, which is made when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct VersionDocument<'a> {
    api: &'a OpenApi,
    path: &'a str,
    root: &'a Root,
}

impl OpenApi {
    /// Describes what a server serves. `remote` has the URLs of aggregated APIs' documents, by their roots.
    #[must_use]
    pub fn new(described: ServedParts<'_>, remote: BTreeMap<String, String>) -> Self {
        let stored = described.stores.iter().map(|store| store.resource());
        let resources = stored.chain(described.storeless);
        Self {
            roots: roots::collect(resources, described.paths),
            custom: CustomSchemas::new(described.stores),
            build: described.build.to_owned(),
            version: described.kubernetes.to_owned(),
            remote,
        }
    }

    /// Returns true if a path is that of a document.
    #[must_use]
    pub fn has(path: &str) -> bool {
        let below = path.strip_prefix(V3);
        path == V2 || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the document of v2, which is made unless it is cached.
    pub async fn v2(&self, documents: &Documents, syntax: Syntax) -> Document {
        let hash = self.hash_of_all().await;
        let made = documents
            .0
            .get((OpenApiVersion::V2, syntax), &hash, || async {
                let (schemas, form) = (BuiltIn::unpack().await, OpenApiVersion::V2);
                let index = schemas.index();
                let mut assembly = Assembly::new(form, syntax, &index);
                for (path, root) in &self.roots {
                    self.add(&mut assembly, path, root).await;
                }
                assembly.finish(&self.version, &self.custom).await
            });
        let content = made.await;
        Document { hash, content }
    }

    /// Returns the document of v3 at a root, such as `apis/apps/v1`; `None` if there is none.
    #[must_use]
    pub fn v3<'a>(&'a self, path: &'a str) -> Option<VersionDocument<'a>> {
        let root = self.roots.get(path)?;
        let api = self;
        Some(VersionDocument { api, path, root })
    }

    /// Returns the index of the documents and their URLs, as JSON.
    pub async fn index(&self) -> Vec<u8> {
        let mut paths = serde_json::Map::new();
        for (path, root) in &self.roots {
            let url = url(path, &self.hash_of(path, root).await);
            paths.insert(path.clone(), serde_json::json!({"serverRelativeURL": url}));
        }
        for (path, url) in &self.remote {
            paths.insert(path.clone(), serde_json::json!({"serverRelativeURL": url}));
        }
        serde_json::json!({ "paths": paths })
            .to_string()
            .into_bytes()
    }

    /// Adds what is at a root.
    async fn add(&self, assembly: &mut Assembly<'_>, path: &str, root: &Root) {
        match root {
            Root::Discovery => assembly.add(&discovery::item(path)),
            Root::Version(group_version, resources) => {
                if resources.iter().all(|it| it.is_custom()) {
                    assembly.describe_definitions();
                } else {
                    assembly.limit_to(group_version);
                    assembly.add(&discovery::item(path));
                }
                for resource in resources {
                    for item in operations::path_items(path, resource) {
                        assembly.add(&item);
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

impl VersionDocument<'_> {
    /// Returns the hash of what the document is made of.
    pub async fn hash(&self) -> String {
        self.api.hash_of(self.path, self.root).await
    }

    /// Returns the path and query of the document as it is under this hash.
    #[must_use]
    pub fn url(&self, hash: &str) -> String {
        url(self.path, hash)
    }

    /// Returns the document of this hash, which is made unless it is cached.
    pub async fn content(&self, documents: &Documents, hash: &str, syntax: Syntax) -> Bytes {
        let made = documents
            .0
            .get((OpenApiVersion::V3, syntax), hash, || async {
                let (schemas, form) = (BuiltIn::unpack().await, OpenApiVersion::V3);
                let index = schemas.index();
                let mut assembly = Assembly::new(form, syntax, &index);
                self.api.add(&mut assembly, self.path, self.root).await;
                assembly.finish(&self.api.version, &self.api.custom).await
            });
        made.await
    }
}

fn url(path: &str, hash: &str) -> String {
    format!("{V3}/{path}?hash={hash}")
}
