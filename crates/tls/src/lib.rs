//! TLS on both sides: certificates and their files, verifiers of servers, identities of clients, and the kubeconfigs that
//! name servers and clients.
//!
//! Which client certificates authenticate whom is `ringwatch-authentication`'s.

pub mod certificates;
pub mod client_identity;
pub mod error;
pub mod kubeconfig;
pub mod pem;
pub mod private_file;
pub mod tls_client;
pub mod verifiers;
pub mod watched_file;
