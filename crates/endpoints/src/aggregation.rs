//! APIs that other servers serve (API aggregation): their discovery, and the proxy of their requests.
//!
//! ```text
//!   APIService, with a service --controllers--> AggregatedServer --+-- discovery, the index of OpenAPI
//!                                                                  |
//!   client --request, authorised here--> proxy --X-Remote-User-----+--> the service's server
//! ```
//!
//! The server's controller checks that those servers are available, and fetches their discovery.

mod discovery;
mod identity;
mod proxy;

use std::collections::BTreeMap;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use ringwatch::clock::Clock;
use rustls::ClientConfig;

pub use self::discovery::{DiscoveryError, ResourceDiscovery, aggregated, legacy};
pub use self::identity::{NotNameable, set_identity, set_impersonation};
pub(super) use self::proxy::{RequestHead, proxy};
use ringwatch_apimachinery::GroupVersion;
use ringwatch_http::client::Backend;

use super::forward::PROXY_CONNECT_TIMEOUT;
use crate::{AggregatedApi, ServiceAddresses};

/// Number of path segments after the version that authorization uses:
/// `watch/namespaces/{namespace}/{resource}/{name}/{subresource}`.
const AUTHORISED_PARTS: usize = 6;

/// An API that another server serves, with that server's discovery.
#[derive(Clone, Debug)]
pub struct AggregatedServer {
    /// The APIService object, parsed.
    pub api: AggregatedApi,
    /// The client's side of TLS for the server, or the message that says why the APIService's settings cannot be used.
    pub tls: Result<Arc<ClientConfig>, String>,
    /// The resources that the server's discovery document lists; empty until it has answered once.
    pub resources: Arc<Vec<ResourceDiscovery>>,
    /// True if the server did not answer discovery the last time, so that older resources are shown.
    pub is_stale: bool,
    /// The URL of its OpenAPI document, with the hash in the query; `None` if it has none.
    pub openapi: Option<String>,
}

impl AggregatedServer {
    /// Returns an API whose server has not been asked for its resources yet.
    #[must_use]
    pub fn new(tls: Result<Arc<ClientConfig>, String>, api: AggregatedApi) -> Self {
        Self {
            api,
            tls,
            resources: Arc::default(),
            is_stale: true,
            openapi: None,
        }
    }

    /// Returns the backend for one address of the service. A server whose certificate is verified may be anywhere; with
    /// `insecureSkipTLSVerify` the address must not be local to this machine or its link, so that the proxy reaches
    /// nothing that listens only there.
    #[must_use]
    pub fn backend(
        &self,
        host: String,
        port: u16,
        tls: Arc<ClientConfig>,
        clock: &Clock,
    ) -> Backend {
        Backend {
            host,
            port,
            tls: Some(tls),
            name: self.api.server_name(),
            may_be_local: !self.api.insecure,
            connect_timeout: PROXY_CONNECT_TIMEOUT,
            bytes_per_second: None,
            kept: None,
            clock: clock.clone(),
        }
    }
}

/// All APIs that other servers serve.
#[derive(Clone, Debug, Default)]
pub struct AggregatedServers {
    by_version: BTreeMap<GroupVersion, Arc<AggregatedServer>>,
    /// Resolves a service to an address; `None` while no APIs of other servers are known.
    services: Option<ServiceAddresses>,
    /// The name of this server in the `Via` header of proxied requests.
    via: String,
    /// True if redirections of the other servers are passed on to clients.
    passes_redirects: bool,
}

impl AggregatedServers {
    /// Collects these APIs, whose services `services` resolves.
    #[must_use]
    pub fn new(
        servers: impl IntoIterator<Item = Arc<AggregatedServer>>,
        services: ServiceAddresses,
        via: &str,
    ) -> Self {
        let filed = servers.into_iter();
        Self {
            by_version: filed.map(|it| (it.api.group_version.clone(), it)).collect(),
            services: Some(services),
            via: via.to_owned(),
            passes_redirects: false,
        }
    }

    /// Returns the APIs with the setting if redirections of the other servers are passed on, which they are not by
    /// default.
    #[must_use]
    pub fn passing_redirects(self, passes_redirects: bool) -> Self {
        Self {
            passes_redirects,
            ..self
        }
    }

    /// Returns all aggregated APIs, ordered by group and version.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<AggregatedServer>> {
        self.by_version.values()
    }

    /// Returns the other server that serves a path, or the document that describes it; `None` if that is this server.
    pub(super) fn serving(&self, path: &str) -> Option<&Arc<AggregatedServer>> {
        if self.by_version.is_empty() {
            return None;
        }
        if let Some(root) = path.strip_prefix(ringwatch_openapi::V3) {
            return self.serving(root).filter(|it| it.openapi.is_some());
        }
        // The same parsing as for authorization.
        let parts = path.split('/').filter(|part| !part.is_empty());
        let mut parts = parts.map(|part| percent_decode_str(part).decode_utf8_lossy());
        let group = match &*parts.next()? {
            "api" => "".into(),
            "apis" => parts.next()?,
            _ => return None,
        };
        let version = GroupVersion::new(&group, &parts.next()?);
        // Other servers may decode an escaped slash as a separator, and so answer another request than the authorized
        // one.
        let is_ambiguous = parts.take(AUTHORISED_PARTS).any(|part| part.contains('/'));
        self.by_version.get(&version).filter(|_| !is_ambiguous)
    }

    /// Returns the URLs of the OpenAPI documents, by roots such as `apis/apps/v1`.
    pub(super) fn openapi(&self) -> BTreeMap<String, String> {
        let documents = self.iter().filter_map(|server| {
            let root = server.api.path().trim_start_matches('/').to_owned();
            Some((root, server.openapi.clone()?))
        });
        documents.collect()
    }
}
