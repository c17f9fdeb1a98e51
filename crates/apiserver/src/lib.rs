//! The REST layer, above the connections of `ringwatch-http`.
//!
//! [`endpoints`] answers requests from the registry's stores; [`filters`] run before it: authentication, impersonation,
//! priority and fairness, deadlines; [`threads`] has the runtimes that all of this runs on. Rules of kinds do not belong
//! here, nor tasks that follow stored objects, which are in `ringwatch-controllers`. `ringwatch-server` composes a server.

mod aggregated_api;
mod audit_id;
pub mod current_credentials;
pub mod endpoints;
pub mod filters;
pub mod health;
mod outgoing_call;
mod service_addresses;
pub mod shutdown;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
pub mod webhook_client;

pub use self::aggregated_api::{AggregatedApi, ServiceReference};
pub use self::service_addresses::ServiceAddresses;

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();
