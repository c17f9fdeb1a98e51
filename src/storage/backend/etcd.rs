//! The etcd backend.
//!
//! Every endpoint has two connections, one for calls and one for watches, so that watches which are not read do not
//! hold up calls. Calls go to one endpoint until it fails, then to the next; a call that may already have had an effect
//! is not repeated.
//!
//! The hard part is the watch: etcd splits large responses into fragments, which are joined again, and its progress
//! notices are trusted only if every endpoint is new enough.

mod cluster;
mod config;
mod convert;
mod endpoint;
mod error;
mod leases;
mod version;
mod watch;

pub use cluster::Etcd;
pub use config::{Config, TlsFiles};
pub use endpoint::AddMetadata;
