//! OpenAPI: the documents that tell clients every path, operation and schema.
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

mod answer;
mod built_in;
mod cache;
mod custom;
mod discovery;
mod document;
mod hash;
mod messages;
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

use http::{HeaderMap, Method, Response};
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_http::ResponseBody;
use ringwatch_registry::{Resource, Store};

use self::built_in::BuiltIn;
use self::cache::DocumentCache;
use self::custom::CustomSchemas;
use self::document::{Assembly, Form};
use super::api_config::ApiConfig;
use super::errors::Failure;
use super::negotiation;
use super::params::Query;
use super::response;

/// The path of the v2 document, which describes the whole API.
pub(super) const V2: &str = "/openapi/v2";

/// The path of the index of the v3 documents; the document of a group version is below it.
pub(super) const V3: &str = "/openapi/v3";

/// A cache of the finished documents that were asked for last.
#[derive(Debug)]
pub(super) struct Documents(DocumentCache);

impl Documents {
    /// Creates an empty cache, whose documents count against the budget of this ledger.
    pub(super) fn new(ledger: &Ledger) -> Self {
        Self(DocumentCache::new(ledger))
    }
}

/// The API that the documents describe, and how to make them.
#[derive(Debug)]
pub(super) struct OpenApi {
    /// The documents of v3 by their roots, such as `apis/apps/v1`.
    roots: BTreeMap<String, Root>,
    custom: CustomSchemas,
    /// The program's own version.
    build: String,
    clock: Clock,
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

impl OpenApi {
    /// Describes what these stores and the resources without a store serve. `remote` has the URLs of aggregated APIs'
    /// documents, by their roots.
    pub(super) fn new(
        config: &ApiConfig,
        stores: &[Arc<Store>],
        remote: BTreeMap<String, String>,
    ) -> Self {
        let stored = stores.iter().map(|store| store.resource());
        let resources = stored.chain(&config.storeless);
        Self {
            roots: roots::collect(resources, &config.extra_root_paths),
            custom: CustomSchemas::new(stores),
            build: config.version.git_version.clone(),
            clock: config.clock.clone(),
            version: format!("{}.{}", config.version.major, config.version.minor),
            remote,
        }
    }

    /// Returns true if a path is that of a document.
    pub(super) fn has(path: &str) -> bool {
        let below = path.strip_prefix(V3);
        path == V2 || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true if answers to a path are compressed for clients that accept it. kube-apiserver does not compress
    /// those of v3.
    pub(super) fn is_compressed(path: &str) -> bool {
        path == V2 || !Self::has(path)
    }

    /// Answers a request for a document.
    pub(super) async fn serve(
        &self,
        documents: &Documents,
        method: &Method,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
    ) -> Response<ResponseBody> {
        if method != Method::GET && method != Method::HEAD {
            let format = negotiation::status_format(headers, false);
            return response::failure(format, &Failure::method_not_allowed());
        }
        if path == V2 {
            return self.serve_v2(documents, headers).await;
        }
        match path.trim_start_matches(V3).trim_matches('/') {
            "" => answer::index(headers, self.index().await),
            root => self.serve_v3(documents, root, query, headers).await,
        }
    }

    async fn serve_v2(&self, documents: &Documents, headers: &HeaderMap) -> Response<ResponseBody> {
        let Some(syntax) = answer::wanted(headers, Form::V2) else {
            return answer::not_acceptable();
        };
        let hash = self.hash_of_all().await;
        let made = documents.0.get((Form::V2, syntax), &hash, || async {
            let (schemas, form) = (BuiltIn::unpack().await, Form::V2);
            let index = schemas.index();
            let mut assembly = Assembly::new(form, syntax, &index);
            for (path, root) in &self.roots {
                self.add(&mut assembly, path, root).await;
            }
            assembly.finish(&self.version, &self.custom).await
        });
        let content = made.await;
        answer::document(headers, Form::V2, syntax, &hash, None, content)
    }

    async fn serve_v3(
        &self,
        documents: &Documents,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
    ) -> Response<ResponseBody> {
        let Some(root) = self.roots.get(path) else {
            return response::page_not_found();
        };
        let Some(syntax) = answer::wanted(headers, Form::V3) else {
            return answer::not_acceptable();
        };
        let hash = self.hash_of(path, root).await;
        let asked = Some(query.first("hash")).filter(|asked| !asked.is_empty());
        if asked.is_some_and(|asked| asked != hash) {
            return answer::moved(&url(path, &hash));
        }
        let made = documents.0.get((Form::V3, syntax), &hash, || async {
            let (schemas, form) = (BuiltIn::unpack().await, Form::V3);
            let index = schemas.index();
            let mut assembly = Assembly::new(form, syntax, &index);
            self.add(&mut assembly, path, root).await;
            assembly.finish(&self.version, &self.custom).await
        });
        let content = made.await;
        let now = asked.map(|_| self.clock.wall());
        answer::document(headers, Form::V3, syntax, &hash, now, content)
    }

    /// Returns the index of the documents and their URLs, as JSON.
    async fn index(&self) -> Vec<u8> {
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

fn url(path: &str, hash: &str) -> String {
    format!("{V3}/{path}?hash={hash}")
}
