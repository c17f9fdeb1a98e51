//! Kubernetes' storage semantics over any backend.
//!
//! A [`Store`] keeps the objects of one type as values of a [`super::backend::Backend`]: the key is the path prefix
//! (`/registry`) and the [`super::Interface`]'s key; the value is the object in protobuf or JSON without its resource
//! version, which is the revision that wrote it. So the backend's compare on that revision is Kubernetes' optimistic
//! concurrency.
//!
//! The hard part is cached content and long reads. A cached object saves a read but may be outdated: no error and no
//! "nothing changed" that follows from it is returned before it was repeated on the store's content. A list in pages is
//! pinned to the revision of its first page. A watch begins at the revision of its initial state, so that no event is
//! lost or sent twice.
//!
//! Beside the store: [`Changes`] feeds a cache with the raw objects and changes of all types, the [`Compactor`]
//! compacts history in turns with other servers, [`Health`] probes the backend.

mod backend_error;
mod changes;
mod compact;
mod compaction_metrics;
mod decode;
mod delete;
mod event;
mod guaranteed_update;
mod health;
mod interface;
mod lease_manager;
mod list;
mod list_memory;
mod list_metrics;
mod request_metrics;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod watcher;

pub use changes::Changes;
pub use compact::Compactor;
pub use compaction_metrics::CompactionMetrics;
pub use health::Health;
pub use list_metrics::{ListMetrics, TypeListMetrics};
pub use request_metrics::{RequestMetrics, TypeRequestMetrics};
pub use store::{Config, Store};
