//! The time of a write until every watcher has it: through the cache to 1, 100 and 1,000 watchers, and as the floor one
//! watch of the backend itself. All in this process, without HTTP.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]

use std::cell::RefCell;
use std::sync::Arc;

use async_trait::async_trait;
use criterion::{Bencher, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::Object;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, KeyRange, WatchRequest};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{
    Interface, ListOptions, NextContent, Rejection, TryUpdate, UpdateOptions, WatchStream, etcd3,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

const KEY: &str = "/pods/ns/a";
const PATH_PREFIX: &str = "/registry";
/// The padding that makes the object about 1 KiB.
const PADDING_BYTES: usize = 800;

fn fan_out(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("a write until every watcher has it");
    group.throughput(Throughput::Elements(1));
    let backend: Arc<dyn Backend> = Arc::new(Embedded::in_memory(Clock::real()));
    let store = runtime.block_on(store_with_object(&backend));
    group.bench_function("floor: one watch of the backend", |bencher| {
        let request = WatchRequest {
            range: KeyRange::prefix(PATH_PREFIX),
            start_revision: 0,
            previous: false,
            progress: false,
        };
        let mut watch = runtime.block_on(backend.watch(request)).unwrap();
        bencher.iter(|| {
            runtime.block_on(async {
                write(&store).await;
                watch.next().await.unwrap().unwrap()
            })
        });
    });
    for watchers in [1, 100, 1_000] {
        let world = runtime.block_on(World::new(watchers));
        group.throughput(Throughput::Elements(watchers as u64));
        let id = BenchmarkId::new("through the cache, watchers", watchers);
        group.bench_function(id, |bencher| world.measure(bencher, &runtime));
    }
    group.finish();
}

/// A cached store of one object with watchers.
struct World {
    store: etcd3::Store,
    watches: RefCell<Vec<WatchStream>>,
    feed: JoinHandle<()>,
}

impl World {
    async fn new(watchers: usize) -> Self {
        let backend: Arc<dyn Backend> = Arc::new(Embedded::in_memory(Clock::real()));
        let store = store_with_object(&backend).await;
        let source = Arc::new(etcd3::Changes::new(backend, PATH_PREFIX));
        let metrics = CacheMetrics::register(&mut Registry::default());
        let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
        let cacher = feed.add_type(TypeConfig::new("", "pods"));
        let running = tokio::spawn(reflector.run(std::future::pending()));
        cacher.ready().await.unwrap();
        let delegator = CacheDelegator::new(cacher, Arc::new(store.clone()));
        let options = ListOptions {
            resource_version: Some(delegator.current_resource_version().await.unwrap()),
            recursive: true,
            ..ListOptions::default()
        };
        let mut watches = Vec::new();
        for _ in 0..watchers {
            watches.push(delegator.watch("/pods/", options.clone()).await.unwrap());
        }
        Self {
            store,
            watches: watches.into(),
            feed: running,
        }
    }

    fn measure(&self, bencher: &mut Bencher<'_>, runtime: &Runtime) {
        let mut watches = self.watches.borrow_mut();
        bencher.iter(|| {
            runtime.block_on(async {
                let written = write(&self.store).await;
                for watch in watches.iter_mut() {
                    let event = watch.next().await.unwrap().unwrap();
                    assert_eq!(event.revision(), written, "no event is lost");
                }
            });
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

async fn store_with_object(backend: &Arc<dyn Backend>) -> etcd3::Store {
    let config = etcd3::Config::new(PATH_PREFIX, "/pods", Clock::real());
    let store = etcd3::Store::new(Arc::clone(backend), config);
    store.create(KEY, &pod(0), None).await.unwrap();
    store
}

fn pod(number: u64) -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u", "labels": {"n": number.to_string()}},
        "spec": {"padding": "x".repeat(PADDING_BYTES)},
    })
}

/// Changes the object and returns the revision.
async fn write(store: &etcd3::Store) -> u64 {
    let options = UpdateOptions::default();
    let updated = store.guaranteed_update(KEY, options, &mut Count).await;
    updated.unwrap().revision()
}

/// Counts up in a label.
struct Count;

#[async_trait]
impl TryUpdate for Count {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let before = existing.and_then(|it| it.attributes().labels().get("n"));
        let object = pod(before.unwrap_or("0").parse::<u64>()? + 1);
        Ok(NextContent { object, ttl: None })
    }
}

criterion_group!(benches, fan_out);
criterion_main!(benches);
