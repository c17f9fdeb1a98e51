//! A feed without tasks, sockets and stores: it is polled by hand, and its changes come from a queue.
#![allow(
    clippy::disallowed_types,
    reason = "a bench is no part of what the models look at"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::{FieldPath, FieldSchema, ResourceVersion, WatchEvent};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Cacher, Feed, TypeConfig};
use ringwatch::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, Interface, List,
    ListOptions, StorageError, Versioner, WatchStream, etcd3,
};
use ringwatch_testing::pod::pod;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// A feed that is polled by hand, and its watchers.
pub struct World {
    script: Arc<Script>,
    running: Pin<Box<dyn Future<Output = ()>>>,
    delegator: CacheDelegator,
    /// The watchers.
    pub watches: Vec<WatchStream>,
    /// The runtime, whose time is paused.
    pub runtime: Runtime,
}

impl World {
    /// Creates watchers and lets them receive everything.
    pub fn new(watchers: usize, options: impl Fn(usize) -> ListOptions) -> Self {
        Self::with_shards(false, watchers, options)
    }

    /// Creates watchers of a cache with or without indexes of shards, and lets them receive everything.
    pub fn with_shards(
        shard_indexes: bool,
        watchers: usize,
        options: impl Fn(usize) -> ListOptions,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let entered = runtime.enter();
        let script = Arc::new(Script::default());
        let (cacher, running) = feed(&script, shard_indexes);
        let delegator = CacheDelegator::new(cacher, Arc::new(store()));
        drop(entered);
        let mut world = Self {
            script,
            running,
            delegator,
            watches: Vec::with_capacity(watchers),
            runtime,
        };
        // The feed lists the type and begins to follow it.
        (0..4).for_each(|_| world.turn());
        for number in 0..watchers {
            let watch = world.attach(options(number));
            world.watches.push(watch);
        }
        world.receive(0);
        world.warm_up();
        world
    }

    /// Sends one event that is not measured: the dispatcher applies the registrations.
    fn warm_up(&mut self) {
        self.write();
        self.turn();
        for watch in &mut self.watches {
            received(watch);
        }
    }

    /// Returns a further watcher.
    pub fn attach(&self, options: ListOptions) -> WatchStream {
        let _entered = self.runtime.enter();
        let watch = self.delegator.watch("/pods/", options).now_or_never();
        watch.expect("it begins at once").unwrap()
    }

    /// Lets the feed do what it can do now.
    pub fn turn(&mut self) {
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        assert!(self.running.as_mut().poll(&mut context).is_pending());
    }

    /// Writes the object. The feed has not looked yet.
    pub fn write(&self) {
        const POD: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"app":"w0"},"name":"a","namespace":"ns"}}"#;
        self.script.write([("/pods/ns/a".to_owned(), POD.into())]);
    }

    /// Writes pods at once: the names and the nodes that they are on. The feed has not looked yet.
    pub fn write_pods(&self, pods: impl IntoIterator<Item = (String, String)>) {
        self.script.write(pods.into_iter().map(|(name, node)| {
            let mut value = pod(&name);
            value["metadata"]["labels"]["node"] = node.as_str().into();
            value["spec"]["nodeName"] = node.into();
            let value = codec::encode_value(&value).unwrap();
            (format!("/pods/ns/{name}"), value.into())
        }));
    }

    /// Writes encoded objects by key, with one revision. The feed has not looked yet.
    pub fn write_encoded(&self, values: impl IntoIterator<Item = (String, Bytes)>) {
        self.script.write(values);
    }

    /// Lists pods in memory.
    pub fn list(&self, options: ListOptions) -> List {
        let _entered = self.runtime.enter();
        let list = self.delegator.get_list("/pods/", options).now_or_never();
        list.expect("it is in memory").unwrap()
    }

    /// Every watcher receives so many items, and then sleeps.
    pub fn receive(&mut self, items: usize) {
        for watch in &mut self.watches {
            assert_eq!(received(watch), items, "no event is lost");
        }
    }
}

/// Returns how many items a watch has.
pub fn received(watch: &mut WatchStream) -> usize {
    let mut items = 0;
    while let Some(item) = watch.next().now_or_never() {
        let _: WatchEvent = item.unwrap().unwrap();
        items += 1;
    }
    items
}

fn feed(
    script: &Arc<Script>,
    shard_indexes: bool,
) -> (Arc<Cacher>, Pin<Box<dyn Future<Output = ()>>>) {
    let source = Arc::clone(script);
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let cacher = feed.add_type(
        TypeConfig::new("", "pods")
            .with_versioner(Versioner::new(schema()))
            .with_shard_indexes(shard_indexes),
    );
    (cacher, Box::pin(reflector.run(std::future::pending())))
}

/// Returns the fields that pods are selected by.
pub fn schema() -> FieldSchema {
    let field = |name: &'static str, indexed| FieldPath {
        name: name.into(),
        default: "",
        from: &[],
        indexed,
    };
    FieldSchema::new([field("spec.nodeName", true), field("status.phase", false)])
}

/// Returns a store that is never called.
fn store() -> etcd3::Store {
    let config = etcd3::Config::new("/registry", "/pods", Clock::real());
    etcd3::Store::new(Arc::new(Embedded::in_memory(Clock::real())), config)
}

/// Returns the options of a watch of everything after a revision.
pub fn since(revision: u64) -> ListOptions {
    ListOptions {
        resource_version: Some(ResourceVersion(revision)),
        recursive: true,
        ..ListOptions::default()
    }
}

/// Changes, as many as are wanted.
#[derive(Debug)]
struct Script {
    revision: Mutex<u64>,
    follower: Mutex<Option<mpsc::UnboundedSender<Result<ChangeBatch, StorageError>>>>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            revision: Mutex::new(1),
            follower: Mutex::default(),
        }
    }
}

impl Script {
    fn revision(&self) -> u64 {
        *self.revision.lock().unwrap()
    }

    fn write(&self, values: impl IntoIterator<Item = (String, Bytes)>) {
        let revision = self.revision() + 1;
        *self.revision.lock().unwrap() = revision;
        let changes = values.into_iter().map(|(key, value)| Change {
            key,
            revision,
            kind: ChangeKind::Put {
                value,
                created: false,
            },
        });
        let batch = ChangeBatch {
            changes: changes.collect(),
            revision,
        };
        let follower = self.follower.lock().unwrap();
        follower.as_ref().unwrap().send(Ok(batch)).unwrap();
    }
}

#[async_trait]
impl ChangeSource for Script {
    async fn page(
        &self,
        _prefix: &str,
        _after: Option<&str>,
        _revision: u64,
        _limit: u32,
    ) -> Result<ChangePage, StorageError> {
        Ok(ChangePage {
            revision: self.revision(),
            items: Vec::new(),
            more: false,
        })
    }

    async fn follow(&self, _revision: u64) -> Result<ChangeStream, StorageError> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        *self.follower.lock().unwrap() = Some(sender);
        Ok(futures::stream::poll_fn(move |context| receiver.poll_recv(context)).boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        Ok(self.revision())
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        self.current_revision().await
    }

    async fn has_written(&self, _key: &str, _revision: u64) -> Result<bool, StorageError> {
        Ok(true)
    }

    fn progress_is_trusted(&self) -> bool {
        true
    }
}
