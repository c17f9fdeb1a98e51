//! The number of changes a second that one core takes from etcd's watch into the caches, and the time by which the
//! caches are behind.
//!
//! A stand-in for etcd sends encoded watch responses over loopback. The engine runs in one thread, whose processor time
//! is measured, in stages that each include the one before:
//!
//! - `gRPC`: the responses of a watch, decoded
//! - `changes`: the changes of types, as a feed gets them
//! - `caches`: all of it: state, window, dispatch
//!
//! Before that, how much memory objects take beside their keys and values in etcd: a million Leases, and objects of 5
//! KB, without and with the events by which they came one by one.
//!
//! `cargo bench --bench ingest` measures; under `cargo test` everything runs briefly.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench is the composition root of what it measures, and needs real time"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(unreachable_pub, reason = "nobody else uses it")]

mod fake_etcd;
#[path = "../support/lease.rs"]
mod lease;
#[path = "../support/memory.rs"]
mod memory;

use std::ops::Range;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use etcd_client::proto::{PbEvent, PbKeyValue, PbWatchResponse};
use futures::{FutureExt, StreamExt};
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::meta::{FieldSchema, ResourceVersion};
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, KeyRange, WatchRequest};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch::storage::{
    ChangeSource, GetOptions, Interface, ListOptions, StorageError, Versioner, WatchStream, etcd3,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tikv_jemallocator::Jemalloc;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use self::fake_etcd::{FakeEtcd, framed, header};
use self::lease::lease;
use self::memory::resident_bytes;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const PATH_PREFIX: &str = "/registry";
/// The environment variables by which a process is told the number of a state, and how many Leases there are.
const STATE: &str = "INGEST_STATE";
const OBJECTS: &str = "INGEST_OBJECTS";
/// The size of a chunk in bytes, where all is sent at once, chunk by chunk; its last response may go beyond it.
const CHUNK_BYTES: usize = 64 << 10;
/// The rate of the run that measures how far the caches are behind, in events a second; a lower one under `cargo test`.
const PACED_PER_SECOND: u64 = 100_000;
const TEST_PACED_PER_SECOND: u64 = 1_000;
/// The time between two sends of that run.
const PACE: Duration = Duration::from_millis(1);

/// Objects that are written, how their events are sent, and to whom.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// Makes the object of a number.
    object: fn(u64) -> Value,
    /// The number of objects. All are created, then renewed in turn.
    objects: u64,
    /// The number of events that are measured: renewals of the objects.
    events: u64,
    /// The number of events in a response. A response that etcd sends to a watch that keeps up has those of one write.
    of_response: u64,
    types: u64,
    /// The number of watchers, which watch objects that do not change.
    watchers: usize,
    window: WindowLimits,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Grpc,
    Changes,
    Caches,
}

fn main() {
    if let Ok(number) = std::env::var(STATE) {
        return print_state(number.parse().unwrap());
    }
    let measured = std::env::args().any(|argument| argument == "--bench");
    let (objects, events) = if measured {
        (1_000_000, 300_000)
    } else {
        (2_000, 2_000)
    };
    let loads = loads(events);
    print_states(objects);
    println!(
        "{:36} {:>9} {:>9} {:>9} {:>12}",
        "processor time of an event, us", "gRPC", "changes", "caches", "events/s"
    );
    for load in loads {
        let stage = |stage| {
            let time = processor_time(load, stage);
            time.as_secs_f64() * 1e6 / load.events as f64
        };
        let (grpc, changes, caches) = (
            stage(Stage::Grpc),
            stage(Stage::Changes),
            stage(Stage::Caches),
        );
        let rate = 1e6 / caches;
        println!(
            "{:36} {grpc:>9.2} {changes:>9.2} {caches:>9.2} {rate:>12.0}",
            load.name
        );
    }
    let (seconds, per_second) = if measured {
        (10, PACED_PER_SECOND)
    } else {
        (1, TEST_PACED_PER_SECOND)
    };
    let mut late = lateness(loads[0], seconds, per_second);
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "{per_second} renewals a second: behind by p50 {:.2} ms, p99 {:.2} ms, at most {:.2} ms",
        at(50),
        at(99),
        at(100)
    );
}

/// Prints how much memory states take, each measured in a process of its own.
fn print_states(objects: u64) {
    for number in 0..states(0).len() {
        let output = Command::new(std::env::current_exe().unwrap())
            .env(STATE, number.to_string())
            .env(OBJECTS, objects.to_string())
            .output()
            .unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{problem}");
        print!("{}", String::from_utf8(output.stdout).unwrap());
    }
    println!();
}

/// Returns what is measured of so many Leases and fewer larger objects: how many come at a time, and how many events
/// the window may have.
fn states(leases: u64) -> [(Load, u64, u64, usize); 3] {
    let loads = loads(1);
    let large = leases / 50;
    [
        (loads[0], leases, 1_000, 100),
        (loads[5], large, 1_000, 100),
        // Each waits until the one before it has come, so that it is a batch of its own.
        (loads[5], large / 4, 1, WindowLimits::default().events_max),
    ]
}

/// Measures one of the states in this process.
fn print_state(number: usize) {
    let objects = std::env::var(OBJECTS).unwrap().parse().unwrap();
    let (load, objects, at_a_time, events_max) = states(objects)[number];
    let (stored, resident) = state_bytes(load, objects, at_a_time, events_max);
    let each = |bytes: usize| bytes as f64 / objects as f64;
    println!(
        "{objects} of {}, {at_a_time} at a time, up to {events_max} events kept: {:.0} bytes of each in etcd, {:.0} resident, {:.2} times as many",
        load.name,
        each(stored),
        each(resident),
        resident as f64 / stored as f64
    );
}

/// Returns the loads, of which the first is the one that others differ from.
fn loads(events: u64) -> [Load; 6] {
    let leases = Load {
        name: "Lease renewals",
        object: lease,
        objects: events / 3,
        events,
        of_response: 1,
        types: 1,
        watchers: 0,
        window: WindowLimits::default(),
    };
    [
        leases,
        Load {
            name: "the same, 1,000 watchers of others",
            watchers: 1_000,
            ..leases
        },
        Load {
            name: "the same, of 20 types",
            types: 20,
            ..leases
        },
        Load {
            name: "the same, 100 a response",
            of_response: 100,
            ..leases
        },
        Load {
            name: "objects of 1 KiB",
            object: |number| padded(number, 850),
            events: events / 2,
            objects: events / 6,
            ..leases
        },
        Load {
            name: "objects of 5 KB",
            object: |number| padded(number, 4_800),
            events: events / 6,
            objects: events / 30,
            ..leases
        },
    ]
}

/// Returns how many bytes the keys and values of objects have in etcd, and by how much the caches that have all of
/// them, and the events that a window may keep, make the process grow.
fn state_bytes(load: Load, objects: u64, at_a_time: u64, events_max: usize) -> (usize, usize) {
    let load = Load {
        objects,
        window: WindowLimits {
            events_max,
            ..WindowLimits::default()
        },
        ..load
    };
    let etcd = FakeEtcd::start();
    let stored = |number| {
        let kv = event(load, number).kv.unwrap();
        kv.key.len() + kv.value.len()
    };
    runtime().block_on(async {
        let engine = Engine::start(&etcd, load, Stage::Caches).await;
        let before = resident_bytes();
        let mut first = 0;
        while first < objects {
            let end = objects.min(first + at_a_time);
            for chunk in encoded(load, first..end) {
                etcd.sender.send(chunk).await.unwrap();
            }
            engine.reach(1 + end).await;
            first = end;
        }
        let grown = resident_bytes().saturating_sub(before);
        ((0..objects).map(stored).sum(), grown)
    })
}

/// Returns the processor time of the engine's thread for the renewals of a load.
fn processor_time(load: Load, stage: Stage) -> Duration {
    let etcd = FakeEtcd::start();
    let created = encoded(load, 0..load.objects);
    let renewed = encoded(load, load.objects..load.objects + load.events);
    let runtime = runtime();
    runtime.block_on(async {
        let engine = Engine::start(&etcd, load, stage).await;
        send(&etcd, created);
        engine.reach(1 + load.objects).await;
        let before = thread_time();
        send(&etcd, renewed);
        engine.reach(1 + load.objects + load.events).await;
        thread_time() - before
    })
}

/// Sends renewals at a steady rate, and returns how long after each moment's renewals were sent the caches had them.
fn lateness(load: Load, seconds: u64, per_second: u64) -> Vec<Duration> {
    let etcd = FakeEtcd::start();
    let created = encoded(load, 0..load.objects);
    let moments = seconds * 1_000_000_000 / u64::try_from(PACE.as_nanos()).unwrap();
    let of_moment = per_second * seconds / moments;
    let chunks: Vec<_> = (0..moments)
        .map(|moment| {
            let first = load.objects + moment * of_moment;
            encoded(load, first..first + of_moment).concat()
        })
        .collect();
    let runtime = runtime();
    runtime.block_on(async {
        let engine = Engine::start(&etcd, load, Stage::Caches).await;
        send(&etcd, created);
        engine.reach(1 + load.objects).await;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let sender = etcd.sender.clone();
        let times = Arc::clone(&sent);
        std::thread::spawn(move || {
            let begun = Instant::now();
            for (moment, chunk) in (0..).zip(chunks) {
                let due = begun + PACE * moment;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                times.lock().unwrap().push(due);
                sender.blocking_send(chunk.into()).unwrap();
            }
        });
        let mut late = Vec::new();
        for moment in 0..moments {
            engine
                .reach(1 + load.objects + (moment + 1) * of_moment)
                .await;
            let due = sent.lock().unwrap()[late.len()];
            late.push(due.elapsed());
        }
        late
    })
}

/// The part of the engine that a stage measures, at work.
struct Engine {
    stores: Vec<CacheDelegator>,
    /// The revision that was reached, where there is no cache.
    reached: Option<tokio::sync::watch::Receiver<u64>>,
    /// Held so that they go on.
    _watches: Vec<WatchStream>,
    _running: JoinSet<()>,
}

impl Engine {
    async fn start(etcd: &FakeEtcd, load: Load, stage: Stage) -> Self {
        let config = Config::new(vec![etcd.endpoint()], TlsFiles::default());
        let backend = Arc::new(Etcd::connect(config, Clock::real()).await.unwrap());
        let source = Arc::new(etcd3::Changes::new(Arc::clone(&backend) as _, PATH_PREFIX));
        let mut running = JoinSet::new();
        let (mut stores, mut watches) = (Vec::new(), Vec::new());
        let (sender, reached) = tokio::sync::watch::channel(0);
        match stage {
            Stage::Grpc => {
                let request = WatchRequest {
                    range: KeyRange::prefix(PATH_PREFIX),
                    start_revision: 2,
                    previous: false,
                    progress: true,
                };
                let mut responses = backend.watch(request).await.unwrap();
                running.spawn(async move {
                    while let Some(response) = responses.next().await {
                        sender.send_replace(response.unwrap().revision);
                    }
                });
            }
            Stage::Changes => {
                let mut changes = source.follow(1).await.unwrap();
                running.spawn(async move {
                    while let Some(batch) = changes.next().await {
                        sender.send_replace(batch.unwrap().revision);
                    }
                });
            }
            Stage::Caches => {
                let metrics = CacheMetrics::register(&mut Registry::default());
                let (feed, reflector) =
                    Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
                let store = |number| cached_store(&feed, Arc::clone(&backend), number, load.window);
                stores.extend((0..load.types).map(store));
                running.spawn(reflector.run(std::future::pending()));
                for store in &stores {
                    store.cacher().ready().await.unwrap();
                }
                for number in 0..load.watchers {
                    let key = format!("{}kube-node-lease/other-{number}", prefix(0));
                    let watch = stores[0].watch(&key, ListOptions::default()).await;
                    let mut watch = watch.unwrap();
                    assert!(watch.next().now_or_never().is_none(), "it is of nothing");
                    watches.push(watch);
                }
            }
        }
        while !etcd.is_watched() {
            tokio::time::sleep(PACE).await;
        }
        Self {
            reached: stores.is_empty().then_some(reached),
            stores,
            _watches: watches,
            _running: running,
        }
    }

    /// Waits until everything up to a revision has come.
    async fn reach(&self, revision: u64) {
        if let Some(reached) = &self.reached {
            let mut reached = reached.clone();
            reached.wait_for(|it| *it >= revision).await.unwrap();
            return;
        }
        // An object that there is not: the answer needs no more than the revision.
        let key = format!("{}none", prefix(0));
        let options = GetOptions {
            resource_version: Some(ResourceVersion(revision)),
        };
        loop {
            match self.stores[0].get(&key, options).await {
                Err(StorageError::KeyNotFound { .. }) => return,
                Err(StorageError::TooLargeResourceVersion { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Returns the prefix of a type's keys, after the path prefix.
fn prefix(number: u64) -> String {
    format!("/leases-{number}/")
}

/// Returns the cached store of a type.
fn cached_store(
    feed: &Feed,
    backend: Arc<Etcd>,
    number: u64,
    window: WindowLimits,
) -> CacheDelegator {
    let versioner = Versioner::new(FieldSchema::default());
    let prefix = prefix(number);
    let config = etcd3::Config::new(
        PATH_PREFIX,
        prefix.trim_end_matches('/').to_owned(),
        Clock::real(),
    )
    .with_versioner(versioner.clone());
    let cacher = feed.add_type(
        TypeConfig::new("", format!("leases-{number}"))
            .with_prefix(prefix)
            .with_versioner(versioner)
            .with_window(window),
    );
    CacheDelegator::new(cacher, Arc::new(etcd3::Store::new(backend, config)))
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap()
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

/// Sends chunks from a thread of their own, as fast as they are taken.
fn send(etcd: &FakeEtcd, chunks: Vec<Bytes>) {
    let sender = etcd.sender.clone();
    std::thread::spawn(move || {
        for chunk in chunks {
            sender.blocking_send(chunk).unwrap();
        }
    });
}

/// Returns the encoded responses of the events of these numbers, each of a revision of its own, in chunks.
fn encoded(load: Load, numbers: Range<u64>) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let events = numbers.by_ref().take(load.of_response.try_into().unwrap());
        let events: Vec<_> = events.map(|number| event(load, number)).collect();
        let last = events.last().and_then(|it| it.kv.as_ref());
        let response = PbWatchResponse {
            header: header(last.unwrap().mod_revision),
            events,
            ..PbWatchResponse::default()
        };
        chunk.extend_from_slice(&framed(&response));
        if chunk.len() >= CHUNK_BYTES {
            chunks.push(chunk.split().freeze());
        }
    }
    chunks.push(chunk.freeze());
    chunks
}

/// Returns the event of a number: the objects are created, then changed in turn.
fn event(load: Load, number: u64) -> PbEvent {
    let object = number % load.objects;
    let revision = |number: u64| i64::try_from(number + 2).unwrap();
    let key = format!(
        "{PATH_PREFIX}{}kube-node-lease/node-{object:07}",
        prefix(object % load.types)
    );
    PbEvent {
        kv: Some(PbKeyValue {
            key: key.into(),
            create_revision: revision(object),
            mod_revision: revision(number),
            version: i64::try_from(number / load.objects + 1).unwrap(),
            value: codec::encode_value(&(load.object)(object)).unwrap(),
            ..PbKeyValue::default()
        }),
        ..PbEvent::default()
    }
}

fn padded(number: u64, bytes: usize) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": format!("node-{number:07}"), "namespace": "kube-node-lease",
            "uid": format!("00000000-0000-0000-0000-{number:012}")},
        "data": {"padding": "x".repeat(bytes)},
    })
}
