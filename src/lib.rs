//! The watch cache of a Kubernetes API server, and the stores behind it.
//!
//! It stores objects in etcd or in an embedded store, keeps the newest state and a window of
//! history in memory, and serves lists and watches to many clients. Read the modules in this order:
//!
//! 1. [`meta`]: the words every layer speaks: versions, keys, objects, selectors, events, statuses.
//! 2. [`storage`]: the [`storage::Interface`] that every store implements, and its options.
//! 3. [`storage::backend`]: the key-value stores underneath, in etcd's own terms.
//! 4. [`storage::etcd3`]: Kubernetes' storage semantics over any backend.
//! 5. [`storage::cacher`]: the watch cache in front of it, or over a [`storage::ChangeSource`] alone.
//!
//! [`clock`] and [`budget`] are what all of it is given: the time, and the memory that it may take.
//!
//! # Features
//!
//! | feature | has | needs |
//! |---|---|---|
//! | none | the watch cache, the store over any backend | |
//! | `embedded` | `storage::backend::embedded`: a store in this process, in memory or in a file | |
//! | `etcd` | `storage::backend::etcd`: a cluster of etcd | a C compiler, for TLS |
//! | `encryption` | encryption at rest, with keys of a file or of KMS plugins | a C compiler, for ciphers |
//!
//! All are on by default. With either store `storage::backend::copy` copies stores into each other.
//!
//! Types of other crates in signatures are `Bytes` of bytes, `BoxStream` of futures, `Value` of `serde_json`,
//! `Timestamp` of jiff, `Instant` and `watch::Receiver` of tokio, `Registry` of prometheus-client, and with `etcd`
//! `MetadataMap` of tonic.
//!
//! # A cached store
//!
//! A store of one type over a backend in memory, the watch cache in front of it, and a watch:
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::StreamExt;
//! use ringwatch::budget::Ledger;
//! use ringwatch::clock::Clock;
//! use ringwatch::meta::WatchEvent;
//! use ringwatch::storage::backend::embedded::Embedded;
//! use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
//! use ringwatch::storage::{Interface, ListOptions, etcd3};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::real();
//! let backend = Arc::new(Embedded::in_memory(clock.clone()));
//!
//! // One feed follows the changes of all types; its reflector does the work.
//! let changes = Arc::new(etcd3::Changes::new(backend.clone(), "/registry"));
//! let (feed, reflector) =
//!     Feed::new(changes, clock.clone(), CacheMetrics::default(), Ledger::unlimited());
//! let reflecting = tokio::spawn(reflector.run(std::future::pending()));
//!
//! // A type: its store, its cache, and both as one store.
//! let store = etcd3::Store::new(
//!     backend,
//!     etcd3::Config::new("/registry", "/configmaps", clock),
//! );
//! let cacher = feed.add_type(TypeConfig::new("", "configmaps"));
//! cacher.ready().await?;
//! let storage = CacheDelegator::new(cacher, Arc::new(store));
//!
//! let everything = ListOptions { recursive: true, ..ListOptions::default() };
//! let mut watch = storage.watch("/configmaps/", everything.clone()).await?;
//! let object = json!({
//!     "kind": "ConfigMap",
//!     "apiVersion": "v1",
//!     "metadata": {"name": "hello", "namespace": "default"},
//! });
//! storage.create("/configmaps/default/hello", &object, None).await?;
//!
//! let Some(Ok(WatchEvent::Added(added))) = watch.next().await else {
//!     panic!("the object is added");
//! };
//! assert_eq!(added.name(), "hello");
//! assert_eq!(storage.get_list("/configmaps/", everything).await?.items.len(), 1);
//! # reflecting.abort();
//! # Ok(())
//! # }
//! ```
//!
//! Nothing that knows HTTP, a kind of object, a user or a flag belongs here: the API server around the engine is made
//! of the crates in `crates/`.

pub mod budget;
pub mod clock;
// Hidden is what the server around the engine shares with it, and benches measure: it may change in any version.
#[doc(hidden)]
pub mod codec;
pub mod meta;
#[doc(hidden)]
pub mod ring;
pub mod storage;
#[doc(hidden)]
pub mod sync;
