//! TLS on both sides: certificates and their files, verifiers of servers, identities of clients, and the kubeconfigs
//! that name servers and clients.
//!
//! Users do not belong here: which client certificate authenticates whom is decided by `ringwatch-authentication`.

pub mod certificates;
mod chain;
pub mod client_identity;
pub mod client_verifier;
pub mod error;
mod handshake_signature;
pub mod kubeconfig;
mod pair_files;
pub mod pem;
pub mod private_file;
pub mod protocol;
pub mod served_certificates;
pub mod target;
pub mod tls_client;
pub mod verifiers;
pub mod watched_file;
