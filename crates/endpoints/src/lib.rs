//! The REST layer: the Kubernetes API over the registry's stores.
//!
//! Paths, verbs, encodings, watch frames, discovery, and what is forwarded to kubelets and other servers belong here,
//! and the health of the server. What runs before it, such as authentication and priority and fairness, is in
//! `ringwatch-filters`; rules of kinds are in `ringwatch-resources`.
//!
//! [`Api::handle`] turns a request into a response: it reads the path ([`RequestInfo`]), the parameters, the accepted
//! media types and the body, calls the store, and writes the answer. Statuses of errors are chosen in `errors` alone.

mod aggregated_api;
mod aggregation;
mod answered_requests;
mod api;
mod api_config;
pub mod audit_id;
mod authorization;
mod call;
pub mod current_credentials;
mod decode;
mod discovery;
mod encoding;
mod errors;
mod event_sizes;
mod forward;
mod handler;
mod handlers;
pub mod health;
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
mod refused;
mod request_head;
mod request_info;
mod request_kind;
mod respond;
mod response;
mod routes;
mod service_addresses;
mod spans;
mod terminations;
#[cfg(test)]
mod testing;
mod translation;
mod version;
mod warnings;
mod websocket;
pub mod zpages;

pub use aggregated_api::{AggregatedApi, ServiceReference};
pub use aggregation::{
    AggregatedServer, AggregatedServers, DiscoveryError, NotNameable, ResourceDiscovery,
    aggregated, legacy, set_identity, set_impersonation,
};
pub use api::Api;
pub use api_config::{ApiConfig, ApiFeatures};
pub use authorization::{refusal, selected_name};
pub use encoding::{ENCODINGS_BYTES_MAX_DEFAULT, EncodingCache};
pub use errors::{NOT_ACCEPTABLE, Refusal, TextError, preflight};
pub use forward::{
    ForwardError, KubeletTls, Kubelets, PROXY_CONNECT_TIMEOUT, ProxiedResponse, forward,
};
pub use handler::{Caller, Credentials, Handler, OwnPaths};
pub use impersonation::{ImpersonatedUser, Impersonation, NotImpersonated, impersonates};
pub use metrics::Metrics;
pub use metrics_format::{MetricsFormat, metrics_format};
pub use refused::refused;
pub use request_info::{RequestInfo, RequestVerb};
pub use respond::plain;
pub use service_addresses::ServiceAddresses;
pub use version::VersionInfo;

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();
