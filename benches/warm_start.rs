//! The time that a new server needs until it serves with a full window: 100,000 events of 1 KiB are replayed from the
//! store's history, over the embedded store and over a real etcd if there is one. Beside each, as the floor, one bare
//! watch of the backend over the same history. Then the time that the embedded store needs to open a file with that
//! history; the floor reads the file's bytes.
//!
//! `cargo bench --bench warm_start` measures; `cargo test --bench warm_start` replays 2,000 events.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures, and reads the time"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, Compare, KeyRange, Op, Txn, WatchRequest};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch::storage::{Interface, ListOptions, etcd3};
use serde_json::json;
use tokio::runtime::Runtime;

const PATH_PREFIX: &str = "/registry";
/// The number of objects, which are written in turns.
const OBJECTS: u64 = 1_000;
/// The padding that makes an object about 1 KiB.
const PADDING_BYTES: usize = 850;
/// The number of writes that are under way at the same time while the history is made.
const WRITERS: usize = 64;
const EVENTS: u64 = 100_000;
const EVENTS_IN_SMOKE: u64 = 2_000;

fn warm_start(criterion: &mut Criterion) {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let events = if measured { EVENTS } else { EVENTS_IN_SMOKE };
    let runtime = Runtime::new().unwrap();
    let embedded: Arc<dyn Backend> = Arc::new(Embedded::in_memory(Clock::real()));
    measure(criterion, &runtime, "embedded", &embedded, events);
    measure_opening(criterion, &runtime, events);
    let Some(process) = ringwatch_testing::etcd::Etcd::start("warm_start over etcd") else {
        return;
    };
    let config = Config::new(vec![process.endpoint()], TlsFiles::default());
    let etcd = runtime
        .block_on(Etcd::connect(config, Clock::real()))
        .unwrap();
    measure(criterion, &runtime, "etcd", &(Arc::new(etcd) as _), events);
}

fn measure(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &str,
    backend: &Arc<dyn Backend>,
    events: u64,
) {
    let last = runtime.block_on(write_history(backend, events));
    let mut group = criterion.benchmark_group(format!("replay of history, {name}"));
    group
        .throughput(Throughput::Elements(events))
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(5));
    group.bench_function("floor: one watch of the backend", |bencher| {
        bencher.iter(|| runtime.block_on(watch(backend, last - events, last)));
    });
    group.bench_function("until the cache serves", |bencher| {
        bencher.iter(|| runtime.block_on(serve(backend, last - events)));
    });
    group.finish();
}

/// Measures the opening of a file of the embedded store that holds so many versions of a thousand objects.
fn measure_opening(criterion: &mut Criterion, runtime: &Runtime, events: u64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("embedded");
    write_file(runtime, &path, events);
    let mut group = criterion.benchmark_group("opening of a file of the embedded store");
    group
        .throughput(Throughput::Elements(events))
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(5));
    group.bench_function("floor: the bytes of the file are read", |bencher| {
        bencher.iter(|| std::fs::read(&path).unwrap());
    });
    group.bench_function("until the store is open", |bencher| {
        // Closing the store, which the next one waits for, is not measured.
        bencher.iter_custom(|times| {
            let opened = (0..times).map(|_| {
                let began = Instant::now();
                let store = Embedded::open(&path, Clock::real()).unwrap();
                let took = began.elapsed();
                drop(store);
                took
            });
            opened.sum()
        });
    });
    group.finish();
}

/// Writes the history into a file, and returns when the file is released.
fn write_file(runtime: &Runtime, path: &Path, events: u64) {
    let (store, commits) = Embedded::open(path, Clock::real()).unwrap();
    let committing = std::thread::spawn(move || commits.run());
    let store: Arc<dyn Backend> = Arc::new(store);
    runtime.block_on(write_history(&store, events));
    drop(store);
    committing.join().unwrap();
}

/// Writes so many versions of a thousand objects, and returns the last revision.
async fn write_history(backend: &Arc<dyn Backend>, events: u64) -> u64 {
    let lanes = futures::stream::iter(0..events).map(|number| {
        let backend = Arc::clone(backend);
        async move { put(&backend, number).await }
    });
    lanes
        .buffer_unordered(WRITERS)
        .fold(0, |last, revision| async move { last.max(revision) })
        .await
}

async fn put(backend: &Arc<dyn Backend>, number: u64) -> u64 {
    let name = format!("{:04}", number % OBJECTS);
    let pod = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "ns", "name": name, "uid": name, "labels": {"n": number.to_string()}},
        "spec": {"padding": "x".repeat(PADDING_BYTES)},
    });
    let key = format!("{PATH_PREFIX}/pods/ns/{name}");
    let txn = Txn {
        // A key that is not there: the write is always made.
        compare: Compare::Version("none".to_owned(), 0),
        then: Op::Put {
            key,
            value: Bytes::from(serde_json::to_vec(&pod).unwrap()),
            lease: None,
        },
        otherwise: None,
    };
    backend.txn(txn).await.unwrap().revision
}

/// Reads the history with a bare watch.
async fn watch(backend: &Arc<dyn Backend>, from: u64, to: u64) {
    let request = WatchRequest {
        range: KeyRange::prefix(PATH_PREFIX),
        start_revision: from + 1,
        previous: false,
        progress: false,
    };
    let mut watch = backend.watch(request).await.unwrap();
    loop {
        let response = watch.next().await.unwrap().unwrap();
        if response
            .events
            .last()
            .is_some_and(|it| it.kv.mod_revision >= to)
        {
            return;
        }
    }
}

/// Starts a feed and waits until its cache serves, with a window that begins at `from`.
async fn serve(backend: &Arc<dyn Backend>, from: u64) {
    let source = Arc::new(etcd3::Changes::new(Arc::clone(backend), PATH_PREFIX));
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let cacher = feed.add_type(TypeConfig::new("", "pods").with_window(WindowLimits {
        bytes_max: usize::MAX,
        ..WindowLimits::default()
    }));
    let running = tokio::spawn(reflector.run(std::future::pending()));
    cacher.ready().await.unwrap();
    let store = etcd3::Store::new(Arc::clone(backend), store_config());
    let delegator = CacheDelegator::new(cacher, Arc::new(store));
    let options = ListOptions {
        resource_version: Some(ResourceVersion(from)),
        recursive: true,
        ..ListOptions::default()
    };
    let mut watch = delegator.watch("/pods/", options).await.unwrap();
    let first = watch.next().await.unwrap().unwrap();
    assert_eq!(first.revision(), from + 1, "the window reaches back");
    drop((watch, delegator));
    running.abort();
    // The old window goes before the next one comes.
    let _ = running.await;
}

fn store_config() -> etcd3::Config {
    etcd3::Config::new(PATH_PREFIX, "/pods", Clock::real())
}

criterion_group!(benches, warm_start);
criterion_main!(benches);
