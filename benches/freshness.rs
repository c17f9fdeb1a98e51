//! The time until a read that wants the newest state gets it.
//!
//! Three parts. The first is that of `ring`: from publishing a revision until the wait for it is over,
//! beside a tokio oneshot that does the same for one waiter. The second is a consistent list from the
//! cache over a real etcd, if there is one, while others write 500 times a second, beside etcd's own
//! linearizable read in the same run. The third is the same list while 10,000 watchers of another type
//! get 100 events a second.
//!
//! `cargo bench --bench freshness` measures; under `cargo test` all parts run briefly.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench is the composition root of what it measures, and needs real time"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "criterion's macros write undocumented functions, and the files of `ring` are included"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group};
use futures::StreamExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::FieldSchema;
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, Compare, Op, RangeRequest, Txn};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{Interface, ListOptions, Versioner, etcd3};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

const PATH_PREFIX: &str = "/registry";
/// The number of objects that are listed.
const OBJECTS: u64 = 100;
const WRITES_PER_SECOND: u64 = 500;
const READS_PER_SECOND: u64 = 100;
/// The watchers of another type, and how often an object of that type is written.
const CROWD: usize = 10_000;
const CROWD_WRITES_PER_SECOND: u64 = 100;

fn poll<F: Future + Unpin>(future: &mut F) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut context).is_ready()
}

/// From publishing until the wait is over, for one waiter among others that wait for more.
fn wait_until_fresh(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("from publishing to the end of a wait");
    group.bench_function("floor: tokio oneshot", |bencher| {
        bencher.iter_batched_ref(
            || {
                let (sender, mut receiver) = oneshot::channel();
                assert!(!poll(&mut receiver));
                (Some(sender), receiver)
            },
            |(sender, receiver)| {
                sender.take().unwrap().send(1_u64).unwrap();
                assert!(poll(receiver));
            },
            BatchSize::SmallInput,
        );
    });
    for others in [0, 100, 10_000] {
        let (mut publisher, published) = ringwatch::ring::waiters::published(0);
        let mut patient: Vec<_> = (0..others).map(|_| published.wait(u64::MAX)).collect();
        assert!(!patient.iter_mut().any(poll));
        let mut next = 0;
        group.bench_function(format!("waiter, beside {others}"), |bencher| {
            bencher.iter_batched_ref(
                || {
                    next += 1;
                    let mut wait = published.wait(next);
                    assert!(!poll(&mut wait));
                    (next, wait)
                },
                |(number, wait)| {
                    publisher.publish(*number);
                    assert!(poll(wait));
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Consistent lists of pods while others write, and etcd's own read beside each.
fn consistent_lists(measured: bool) {
    let runtime = Runtime::new().unwrap();
    let durable = ["--unsafe-no-fsync=false"];
    let Some(process) =
        ringwatch_testing::etcd::Etcd::start_with("freshness over etcd", None, &durable)
    else {
        return;
    };
    let seconds = if measured { 20 } else { 1 };
    runtime.block_on(async {
        let connect = || async {
            let config = Config::new(vec![process.endpoint()], TlsFiles::default());
            Arc::new(Etcd::connect(config, Clock::real()).await.unwrap())
        };
        let (backend, writers) = (connect().await, connect().await);
        for number in 0..OBJECTS {
            put(&*backend, "pods", number).await;
        }
        let [pods, nodes] = cached_stores(backend.clone()).await;

        let writing = tokio::spawn(write_on_schedule(
            writers.clone(),
            "pods",
            WRITES_PER_SECOND,
        ));
        let (lists, reads) = read_on_schedule(&pods, &*backend, seconds).await;
        writing.abort();
        println!("consistent list of {OBJECTS} objects, {WRITES_PER_SECOND} writes a second");
        tell("from the cache", lists);
        tell("floor: etcd's own read", reads);

        let size = if measured { CROWD } else { 10 };
        let crowd = watch(&nodes, size).await;
        let writing = tokio::spawn(write_on_schedule(writers, "nodes", CROWD_WRITES_PER_SECOND));
        let (lists, reads) = read_on_schedule(&pods, &*backend, seconds).await;
        writing.abort();
        drop(crowd);
        println!("the same beside {size} watchers of nodes, {CROWD_WRITES_PER_SECOND} writes of nodes a second");
        tell("from the cache", lists);
        tell("floor: etcd's own read", reads);
    });
}

/// Begins watches of a type that take their events until they are dropped.
async fn watch(store: &CacheDelegator, count: usize) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    for _ in 0..count {
        let options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let stream = store.watch("/nodes/", options).await.unwrap();
        watches.spawn(stream.for_each(|event| async move {
            std::hint::black_box(event.unwrap());
        }));
    }
    watches
}

/// Returns the cached stores of pods and nodes.
async fn cached_stores(backend: Arc<dyn Backend>) -> [CacheDelegator; 2] {
    let source = Arc::new(etcd3::Changes::new(Arc::clone(&backend), PATH_PREFIX));
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let stores = ["pods", "nodes"].map(|resource| {
        let versioner = Versioner::new(FieldSchema::default());
        let cacher = feed.add_type(TypeConfig::new("", resource).with_versioner(versioner.clone()));
        let config = etcd3::Config::new(PATH_PREFIX, format!("/{resource}"), Clock::real())
            .with_versioner(versioner);
        let store = etcd3::Store::new(Arc::clone(&backend), config);
        (cacher.clone(), CacheDelegator::new(cacher, Arc::new(store)))
    });
    tokio::spawn(reflector.run(std::future::pending()));
    for (cacher, _) in &stores {
        cacher.ready().await.unwrap();
    }
    stores.map(|(_, store)| store)
}

/// Writes an object, under one of [`OBJECTS`] names.
async fn put(backend: &dyn Backend, resource: &str, number: u64) {
    let name = format!("{:03}", number % OBJECTS);
    let object = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "ns", "name": name, "uid": name, "labels": {"n": number.to_string()}},
        "spec": {"padding": "x".repeat(850)},
    });
    let txn = Txn {
        // A key that is not there: the write is always made.
        compare: Compare::Version("none".to_owned(), 0),
        then: Op::Put {
            key: format!("{PATH_PREFIX}/{resource}/ns/{name}"),
            value: Bytes::from(serde_json::to_vec(&object).unwrap()),
            lease: None,
        },
        otherwise: None,
    };
    backend.txn(txn).await.unwrap();
}

async fn write_on_schedule(backend: Arc<Etcd>, resource: &'static str, writes_per_second: u64) {
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / writes_per_second));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0.. {
        tick.tick().await;
        let backend = Arc::clone(&backend);
        tokio::spawn(async move { put(&*backend, resource, number).await });
    }
}

/// Returns how long lists and reads took, each by itself.
async fn read_on_schedule(
    delegator: &CacheDelegator,
    backend: &dyn Backend,
    seconds: u64,
) -> (Vec<Duration>, Vec<Duration>) {
    let period = Duration::from_micros(1_000_000 / READS_PER_SECOND);
    let begun = Instant::now();
    let (mut lists, mut reads) = (Vec::new(), Vec::new());
    for number in 0..u32::try_from(seconds * READS_PER_SECOND).unwrap() {
        let due = begun + period * number;
        tokio::time::sleep_until(due.into()).await;
        let from = Instant::now();
        let options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let list = delegator.get_list("/pods/", options).await.unwrap();
        assert_eq!(list.items.len() as u64, OBJECTS);
        lists.push(from.elapsed());
        let from = Instant::now();
        let read = RangeRequest::key(format!("{PATH_PREFIX}/pods/ns/000"));
        backend.range(read).await.unwrap();
        reads.push(from.elapsed());
    }
    (lists, reads)
}

/// Prints the median and the 99th percentile.
fn tell(name: &str, mut durations: Vec<Duration>) {
    durations.sort_unstable();
    let at = |share: usize| durations[(durations.len() - 1) * share / 100].as_secs_f64() * 1e3;
    let (median, high) = (at(50), at(99));
    println!("  {name:<23} p50 {median:>6.2} ms  p99 {high:>6.2} ms");
}

criterion_group!(benches, wait_until_fresh);

fn main() {
    benches();
    let measured = std::env::args().any(|argument| argument == "--bench");
    consistent_lists(measured);
    Criterion::default().configure_from_args().final_summary();
}
