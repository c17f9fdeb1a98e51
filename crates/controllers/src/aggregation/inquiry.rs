//! Asks the server behind an APIService for its resources and its OpenAPI document.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use ringwatch::clock::Clock;
use ringwatch_endpoints::ServiceAddresses;
use ringwatch_endpoints::{
    AggregatedServer, DiscoveryError, ResourceDiscovery, aggregated, legacy, set_identity,
};
use ringwatch_http::client::{ExchangeError, fetch};
use ringwatch_http::full;
use serde::Deserialize;

use super::aggregator;

/// Maximum time for the server to answer, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a response, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Maximum length of the URL of a document.
const PLACE_BYTES_MAX: usize = 1 << 10;

/// Accepted media types of aggregated discovery, by version.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The API of a server, as its discovery says.
#[derive(Debug)]
pub(super) struct DiscoveredApi {
    /// The resources of the API.
    pub(super) resources: Vec<ResourceDiscovery>,
    /// The URL of its OpenAPI document, if it has one.
    pub(super) openapi: Option<String>,
}

/// The reason why a server's response cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum InquiryError {
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Exchange(#[from] ExchangeError),
    #[error("no answer in {} s", TIMEOUT.as_secs())]
    TimedOut,
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("{0}")]
    Discovery(#[from] DiscoveryError),
    #[error("the server does not know {0}")]
    NotServed(String),
}

/// Requests discovery and the OpenAPI index from a server.
///
/// # Errors
/// [`InquiryError`]
pub(super) async fn ask(
    server: &AggregatedServer,
    services: &ServiceAddresses,
    clock: &Clock,
) -> Result<DiscoveredApi, InquiryError> {
    Ok(DiscoveredApi {
        resources: resources(server, services, clock).await?,
        openapi: openapi(server, services, clock).await?,
    })
}

/// Reads the resources from aggregated discovery, or else from the discovery document of the version alone.
async fn resources(
    server: &AggregatedServer,
    services: &ServiceAddresses,
    clock: &Clock,
) -> Result<Vec<ResourceDiscovery>, InquiryError> {
    let wanted = &server.api.group_version;
    let path = if wanted.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    let answer = get(server, services, path, AGGREGATED, clock).await?;
    if answer.status() == StatusCode::OK && is_aggregated(&answer) {
        let found = aggregated(answer.body(), wanted)?;
        return found.ok_or_else(|| InquiryError::NotServed(wanted.to_string()));
    }
    let answer = get(
        server,
        services,
        &server.api.path(),
        "application/json",
        clock,
    )
    .await?;
    match answer.status() {
        StatusCode::OK => Ok(legacy(answer.body(), wanted)?),
        status => Err(InquiryError::Status(status)),
    }
}

fn is_aggregated(answer: &Response<Bytes>) -> bool {
    let media_type = answer.headers().get(CONTENT_TYPE);
    let media_type = media_type.and_then(|it| it.to_str().ok());
    media_type.is_some_and(|it| it.contains("as=APIGroupDiscoveryList"))
}

#[derive(Deserialize)]
struct Index {
    paths: HashMap<String, ApiPath>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiPath {
    #[serde(rename = "serverRelativeURL")]
    server_relative_url: String,
}

/// Reads the URL of the OpenAPI document from the index, if the server has one that names a document of the API.
async fn openapi(
    server: &AggregatedServer,
    services: &ServiceAddresses,
    clock: &Clock,
) -> Result<Option<String>, InquiryError> {
    let answer = get(server, services, "/openapi/v3", "application/json", clock).await?;
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let Ok(mut index) = serde_json::from_slice::<Index>(answer.body()) else {
        return Ok(None);
    };
    let path = server.api.path();
    let place = index.paths.remove(path.trim_start_matches('/'));
    let place = place.map(|it| it.server_relative_url);
    Ok(place.filter(|place| {
        let query = place.strip_prefix(&format!("/openapi/v3{path}"));
        let is_query = query.is_some_and(|it| it.is_empty() || it.starts_with('?'));
        is_query && place.len() <= PLACE_BYTES_MAX
    }))
}

async fn get(
    server: &AggregatedServer,
    services: &ServiceAddresses,
    path: &str,
    accept: &'static str,
    clock: &Clock,
) -> Result<Response<Bytes>, InquiryError> {
    let tls = server.tls.clone().map_err(InquiryError::Unreachable)?;
    let service = &server.api.service;
    let place = services.address(&service.namespace, &service.name, service.port);
    let (host, port) = place.await.map_err(InquiryError::Unreachable)?;
    let backend = server.backend(host, port, tls, clock);
    let request = Request::get(path).header(ACCEPT, accept).body(full(""));
    let mut request = request.map_err(|error| InquiryError::Unreachable(error.to_string()))?;
    set_identity(request.headers_mut(), &aggregator());
    let answer = fetch(&backend, request, ANSWER_BYTES_MAX);
    let answer = clock.timeout(TIMEOUT, answer).await;
    Ok(answer.map_err(|_| InquiryError::TimedOut)??)
}
