//! TLS on both sides: certificates and their files, verifiers of servers, identities of clients.
//!
//! Users do not belong here: which client certificate authenticates whom is decided by `ringwatch-authentication`.

pub mod any_server;
pub mod certificates;
pub mod client_identity;
pub mod error;
pub mod pem;
pub mod private_file;
pub mod tls_client;
mod trusted_servers;
pub mod watched_file;
