//! The REST layer: the Kubernetes API over the registry's stores.
//!
//! [`Api::handle`] turns a request into a response: it reads the path ([`RequestInfo`]), the parameters, the accepted
//! media types and the body, calls the store, and writes the answer. Authentication, limits on requests in flight,
//! health and TLS are the server's.

mod aggregation;
mod api;
mod api_config;
mod authorization;
mod call;
mod decode;
mod discovery;
mod encoding;
mod errors;
mod event_sizes;
mod go_json;
mod handler;
mod handlers;
mod impersonation;
mod memory_gate;
mod metrics;
mod metrics_format;
mod negotiation;
mod object_response;
mod openapi;
mod params;
#[cfg(any(test, feature = "testing"))]
pub mod parsers;
mod patches;
mod forward;
mod request_info;
mod request_kind;
mod respond;
mod response;
mod routes;
mod spans;
mod terminations;
#[cfg(test)]
mod testing;
mod translation;
mod version;
mod warnings;
mod websocket;
pub mod zpages;

pub use aggregation::{
    AggregatedServer, AggregatedServers, DiscoveryError, NotNameable, ResourceDiscovery,
    aggregated, legacy, set_identity, set_impersonation,
};
pub use api::Api;
pub use api_config::{ApiConfig, ApiFeatures};
pub use authorization::{refusal, selected_name};
pub use encoding::{ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache};
pub use errors::TextError;
pub(crate) use errors::{NOT_ACCEPTABLE, Refusal, preflight};
pub use handler::{Caller, Credentials, Handler, OwnPaths};
pub use impersonation::{ImpersonatedUser, Impersonation, NotImpersonated, impersonates};
pub use metrics::Metrics;
pub use metrics_format::{MetricsFormat, metrics_format};
pub use forward::{
    KubeletTls, Kubelets, ForwardError, PROXY_CONNECT_TIMEOUT, ProxiedResponse, forward,
};
pub use request_info::{RequestInfo, RequestVerb};
pub use respond::plain;
pub use version::VersionInfo;
