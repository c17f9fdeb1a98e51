//! Kubernetes' storage semantics over any backend.
//!
//! A [`Store`] keeps the objects of one type as values of a [`super::backend::Backend`]: the key
//! is the path prefix (`/registry`) and the [`super::Interface`]'s key, the value the object in
//! protobuf or JSON without its resource version, and that is the revision that wrote it. So the
//! backend's compare on that revision is Kubernetes' optimistic concurrency.
//!
//! The hard part is what may be believed. A cached object saves a read but may be outdated: no
//! refusal and no "nothing to write" is passed on before the store itself has been asked. A list
//! in pages is pinned to the revision of its first page. A watch begins where its initial state
//! ends, so that nothing is lost or told twice.
//!
//! Beside the store: [`Changes`] feeds a cache with the raw content of all types, the
//! [`Compactor`] takes turns with its peers in forgetting history, [`Health`] asks the backend
//! for a sign of life.

mod backend_error;
mod changes;
mod compact;
mod decode;
mod delete;
mod event;
mod guaranteed_update;
mod health;
mod lease_manager;
mod list;
mod list_memory;
mod list_metrics;
mod request_metrics;
mod state;
mod store;
mod watcher;

pub use changes::Changes;
pub use compact::Compactor;
pub use health::Health;
pub use list_metrics::{ListMetrics, TypeListMetrics};
pub use request_metrics::{RequestMetrics, TypeRequestMetrics};
pub use store::{Config, Store};
