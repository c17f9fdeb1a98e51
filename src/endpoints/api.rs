//! The API as a function from requests to responses.

use std::sync::Arc;
use std::time::Duration;

use super::body::{RequestBody, ResponseBody, full};
use super::metrics::Metrics;
use super::version::VersionInfo;
use crate::clock::Clock;
use crate::registry::{Resource, Store, User};

/// What an [`Api`] is made of.
#[derive(Debug)]
pub struct ApiConfig {
    /// The resources that are served, in the order of discovery.
    pub stores: Vec<Arc<Store>>,
    /// Resources that discovery shows though no store serves them, such as reviews.
    pub storeless: Vec<Arc<Resource>>,
    /// The time.
    pub clock: Clock,
    /// What `/version` says.
    pub version: VersionInfo,
    /// Where clients reach the server, as `host:port`; `/api` shows it.
    pub server_address: String,
    /// Paths that the server itself serves, for the list at `/`.
    pub extra_root_paths: Vec<String>,
    /// What is counted.
    pub metrics: Metrics,
    /// For how long a watch without `timeoutSeconds` runs: this long up to twice as long.
    pub min_request_timeout: Duration,
}

/// The API: everything below `/api` and `/apis`, and the documents that describe it.
#[derive(Debug)]
pub struct Api {
    config: ApiConfig,
}

impl Api {
    /// An API of these resources.
    #[must_use]
    pub fn new(config: ApiConfig) -> Self {
        Self { config }
    }

    /// Answers a request of an authenticated user. Never fails: what goes wrong is in the response.
    pub async fn handle(
        &self,
        request: http::Request<RequestBody>,
        user: User,
    ) -> http::Response<ResponseBody> {
        let _ = (&self.config, request, user);
        http::Response::new(full("404 page not found\n"))
    }
}
