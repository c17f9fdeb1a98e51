//! The REST layer and the HTTP transport below it.
//!
//! [`endpoints`] answers requests out of the registry's stores; [`filters`] go before it: authentication,
//! impersonation, priority and fairness, deadlines; [`transport`] is TLS, HTTP/1.1 and HTTP/2, and the joined writes of
//! watches; [`threads`] has the runtimes that all of this runs on. Rules of kinds do not belong here, nor does what
//! follows stored objects, which is in `ringwatch-controllers`. A server is put together in `ringwatch-server`.

mod audit_id;
mod cancellation;
pub mod endpoints;
pub mod filters;
pub mod health;
mod remote_api;
mod service_addresses;
pub mod shutdown;
pub mod threads;
pub mod transport;
pub mod webhook_client;

pub use self::remote_api::{RemoteApi, ServiceReference};
pub use self::service_addresses::ServiceAddresses;
