//! ringwatch: a Kubernetes-compatible API server core built around its watch cache.
//!
//! It stores objects in etcd or in an embedded store, keeps the newest state and a window of
//! history in memory, and serves lists and watches to many clients. Read the modules in this order:
//!
//! 1. [`meta`]: the words every layer speaks: versions, keys, objects, selectors, events, statuses.
//! 2. [`codec`]: Kubernetes' protobuf, to JSON trees and back.
//! 3. [`storage`]: the [`storage::Interface`] that every store implements, and its options.
//! 4. [`storage::backend`]: the key-value stores underneath, in etcd's own terms.
//! 5. [`storage::etcd3`]: Kubernetes' storage semantics over any backend.
//! 6. [`storage::cacher`]: the watch cache in front of it.
//! 7. [`registry`]: what may be written: strategies, graceful deletion, dry-run.
//! 8. [`authentication`]: who asks: certificates and tokens.
//! 9. [`endpoints`]: the REST layer: routing, parameters, discovery, encodings.
//! 10. [`server`]: the composition root: flags, TLS, identity, limits, health, shutdown.
//!
//! `ARCHITECTURE.md` draws the whole and lists the invariants.

pub mod any_server;
pub mod authentication;
pub mod budget;
pub mod clock;
pub mod codec;
pub mod duration;
pub mod endpoints;
#[cfg(test)]
#[path = "../tests/fuzz/made.rs"]
mod made;
pub mod meta;
#[cfg(test)]
#[path = "../tests/it/support/recorded.rs"]
mod recorded;
pub mod registry;
pub mod ring;
pub mod server;
pub mod storage;
pub mod sync;
pub mod work;
