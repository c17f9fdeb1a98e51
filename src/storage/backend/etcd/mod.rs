//! The etcd backend.
//!
//! Every endpoint has two connections, one for calls and one for watches, so that watches which
//! nobody reads do not hold up calls. Calls go to one endpoint until it fails, then to the next;
//! what may have been done already is not done twice.
//!
//! The hard part is the watch: etcd cuts large responses into fragments, which are put together
//! again, and its progress notices are to be trusted only where every endpoint is new enough.

mod cluster;
mod config;
mod convert;
mod endpoint;
mod error;
mod version;
mod watch;

pub use cluster::Etcd;
pub use config::{Config, TlsFiles};
