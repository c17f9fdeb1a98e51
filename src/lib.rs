//! The watch cache of a Kubernetes API server, and the stores behind it.
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
//! 7. [`ring`]: the lock-minimised kernel of the watch cache.
//!
//! Nothing here knows HTTP, a kind of object or a flag; the API server around it is made of the crates in `crates/`.

pub mod budget;
pub mod clock;
pub mod codec;
pub mod meta;
pub mod ring;
pub mod storage;
pub mod sync;
