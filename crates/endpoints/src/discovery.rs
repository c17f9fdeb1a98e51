//! Discovery: the documents that list groups, versions and resources.
//!
//! All documents are built when resources change. The hard part is the order of groups, which clients use for display
//! and preference: it is the order of the given resources.

mod aggregated;
mod groups;
mod resources;
mod root;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use ringwatch_http::{ResponseBody, full};
use ringwatch_openapi::{V2, V3};
use ringwatch_registry::Store;

use self::aggregated::{AGGREGATED_MEDIA_TYPE, AGGREGATED_PROTOBUF_MEDIA_TYPE};
use self::groups::{Group, Version, VersionResources};
use super::aggregation::AggregatedServers;
use super::api_config::ApiConfig;
use super::errors::Failure;
use super::negotiation::{self, Format, OBJECT_MEDIA_TYPES};
use super::response;

/// The discovery documents by their paths, built when resources change, not for each request.
#[derive(Debug)]
pub(super) struct Discovery {
    documents: HashMap<String, PathDocument>,
    /// The paths below which an unknown one is answered with a Status, as in kube-apiserver: those of built-in groups,
    /// whatever the version.
    built_in: Vec<String>,
}

/// A document at a path.
#[derive(Debug)]
struct PathDocument {
    /// The document as JSON, on one line.
    json: Bytes,
    /// True if it is indented for every client.
    always_pretty: bool,
    /// True if it can be asked for with any method: kube-apiserver answers some without looking at it.
    any_method: bool,
    /// The aggregated form, which only `/api` and `/apis` have.
    aggregated: Option<AggregatedDocument>,
}

/// The groups with all their resources in one document.
#[derive(Debug)]
struct AggregatedDocument {
    json: Bytes,
    protobuf: Bytes,
    /// The ETag, a hash of the content.
    etag: HeaderValue,
}

/// The form of a document that a client asks for.
enum DocumentForm {
    Plain(Format),
    Aggregated(Format),
}

impl Discovery {
    /// Builds the documents.
    pub(super) fn new(
        config: &ApiConfig,
        stores: &[Arc<Store>],
        servers: &AggregatedServers,
    ) -> Self {
        let groups = groups::groups(stores, &config.storeless, servers);
        let own = |group: &&Group| {
            !group.name.is_empty() && group.versions.iter().any(Version::is_built_in)
        };
        let own = groups
            .iter()
            .filter(own)
            .map(|it| format!("/apis/{}/", it.name));
        let built_in = ["/api/", "/version/"].map(str::to_owned);
        let built_in = built_in.into_iter().chain(own).collect();
        let mut documents = HashMap::new();
        let mut add = |path: String, json: Vec<u8>, any_method: bool| {
            let document = PathDocument::new(json, false);
            let document = PathDocument {
                any_method,
                ..document
            };
            documents.insert(path, document);
        };
        add(
            "/api".to_owned(),
            groups::api_versions(&groups, &config.server_address),
            false,
        );
        add("/apis".to_owned(), groups::group_list(&groups), true);
        for group in &groups {
            if !group.name.is_empty() {
                add(format!("/apis/{}", group.name), groups::group(group), true);
            }
            for version in &group.versions {
                // The others are asked for theirs.
                if let VersionResources::Local(resources) = &version.content {
                    let list = resources::resource_list(&version.group_version, resources);
                    add(version.path(), list, !version.is_built_in());
                }
            }
        }
        for (path, core) in [("/api", true), ("/apis", false)] {
            if let Some(document) = documents.get_mut(path) {
                document.aggregated = Some(aggregated::document(&groups, core));
            }
        }
        let versions = groups.iter().flat_map(|group| &group.versions);
        let mut paths: Vec<String> = versions.map(Version::path).collect();
        paths.extend(documents.keys().cloned());
        paths.extend(config.extra_root_paths.iter().cloned());
        let described = [V2, V3].map(str::to_owned);
        paths.extend(described.into_iter().chain([format!("{}/", V3)]));
        let root = PathDocument {
            any_method: true,
            ..PathDocument::new(root::root(paths), true)
        };
        documents.insert("/".to_owned(), root);
        let version = serde_json::to_vec(&config.version).unwrap_or_default();
        documents.insert("/version".to_owned(), PathDocument::new(version, true));
        Self {
            documents,
            built_in,
        }
    }

    /// Answers a request that is not about a resource.
    pub(super) fn serve(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        pretty: bool,
    ) -> Response<ResponseBody> {
        let known = self.documents.get(path).or_else(|| {
            let path = path.trim_end_matches('/');
            self.documents.get(path)
        });
        let format = negotiation::status_format(headers, pretty);
        let Some(document) = known else {
            return self.not_found(path, format);
        };
        let answer = if document.any_method || method == Method::GET {
            document.answer(headers, pretty)
        } else {
            Err(Failure::method_not_allowed())
        };
        answer.unwrap_or_else(|failure| response::failure(format, &failure))
    }

    /// Answers a request for a path that is unknown.
    pub(super) fn not_found(&self, path: &str, format: Format) -> Response<ResponseBody> {
        if self.built_in.iter().any(|own| path.starts_with(own)) {
            response::failure(format, &Failure::no_such_resource())
        } else {
            response::page_not_found()
        }
    }
}

impl PathDocument {
    fn new(json: Vec<u8>, always_pretty: bool) -> Self {
        Self {
            json: json.into(),
            always_pretty,
            any_method: false,
            aggregated: None,
        }
    }

    /// Returns the media types by which the path is known, if a client's are compared with them.
    fn produced(&self) -> &'static [&'static str] {
        if self.always_pretty {
            &["application/json"]
        } else {
            OBJECT_MEDIA_TYPES
        }
    }

    fn answer(&self, headers: &HeaderMap, pretty: bool) -> Result<Response<ResponseBody>, Failure> {
        if !self.any_method && !negotiation::is_produced(headers, self.produced()) {
            return Err(Failure::not_produced(self.produced()));
        }
        if self.always_pretty {
            return response::document(StatusCode::OK, Format::PrettyJson, &self.json);
        }
        match (self.wanted(headers, pretty)?, &self.aggregated) {
            (DocumentForm::Aggregated(format), Some(aggregated)) => {
                Ok(aggregated.answer(headers, format))
            }
            (DocumentForm::Plain(format), _) => {
                response::document(StatusCode::OK, format, &self.json)
            }
            (DocumentForm::Aggregated(_), None) => Err(Failure::not_acceptable(OBJECT_MEDIA_TYPES)),
        }
    }

    /// Chooses the best form that the client accepts and the document has.
    fn wanted(&self, headers: &HeaderMap, pretty: bool) -> Result<DocumentForm, Failure> {
        for clause in negotiation::clauses(headers) {
            let Some(format) = clause.format() else {
                continue;
            };
            if clause.parameter("as").is_none() {
                return Ok(DocumentForm::Plain(match format {
                    Format::Json if pretty => Format::PrettyJson,
                    other => other,
                }));
            }
            if self.aggregated.is_some() && aggregated::is_wanted(&clause) {
                return Ok(DocumentForm::Aggregated(format));
            }
        }
        Err(Failure::not_acceptable(OBJECT_MEDIA_TYPES))
    }
}

impl AggregatedDocument {
    fn answer(&self, headers: &HeaderMap, format: Format) -> Response<ResponseBody> {
        let (media_type, content) = if format == Format::Protobuf {
            (AGGREGATED_PROTOBUF_MEDIA_TYPE, &self.protobuf)
        } else {
            (AGGREGATED_MEDIA_TYPE, &self.json)
        };
        let fresh = headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .any(|known| *known == self.etag);
        let mut response = if fresh {
            let mut response = Response::new(full(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            Response::new(full(content.clone()))
        };
        let answer = response.headers_mut();
        if !fresh {
            let media_type = HeaderValue::from_static(media_type);
            answer.insert(CONTENT_TYPE, media_type);
        }
        answer.insert(ETAG, self.etag.clone());
        answer.insert(VARY, HeaderValue::from_static("Accept"));
        answer.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }
}
