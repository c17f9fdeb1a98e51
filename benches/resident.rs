//! The memory that objects take in a server over the embedded store, by part: the store after it was opened, the cache
//! beside it, and the window of history. Each is measured in a process of its own, that opens the same file.
//!
//! Ratios are to the keys and values, as the store's file has them. The floor is a vector of these.
//!
//! `cargo bench --bench resident` measures 100,000 ConfigMaps of 1 KiB; under `cargo test` everything runs with a few.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures, and needs real time"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(unreachable_pub, reason = "nobody else uses it")]

#[path = "support/memory.rs"]
mod memory;

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use ringwatch::storage::cacher::{CacheMetrics, Feed, TypeConfig, WindowLimits};
use ringwatch::storage::etcd3;
use serde_json::json;
use tikv_jemallocator::Jemalloc;
use tokio::runtime::Runtime;

use self::memory::resident_bytes;

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const PATH_PREFIX: &str = "/registry";
const OBJECTS: u64 = 100_000;
const OBJECTS_IN_SMOKE: u64 = 500;
/// The data of an object, in bytes.
const DATA_BYTES: usize = 1_024;
/// The number of writes that are under way at the same time while the file is made.
const WRITERS: usize = 512;
/// Events that a window has at least, for the stage without one.
const FEW_EVENTS: usize = 100;
/// The time within which jemalloc returns freed pages to the system.
const SETTLE: Duration = Duration::from_secs(12);
const SETTLE_IN_SMOKE: Duration = Duration::from_millis(10);
/// The environment variables by which a process is told its stage, its file and how many objects that has.
const STAGE: &str = "RESIDENT_STAGE";
const FILE: &str = "RESIDENT_FILE";
const COUNT: &str = "RESIDENT_OBJECTS";

const STAGES: [(&str, &str); 4] = [
    ("values", "floor: a vector of keys and values"),
    ("store", "the embedded store"),
    ("cache", "and the cache beside it"),
    ("window", "and as many events of history"),
];

fn main() {
    if let Ok(stage) = std::env::var(STAGE) {
        let file = std::env::var(FILE).unwrap();
        let objects = std::env::var(COUNT).unwrap().parse().unwrap();
        println!("{}", grown(&stage, Path::new(&file), objects));
        return;
    }
    let measured = std::env::args().any(|argument| argument == "--bench");
    let objects = if measured { OBJECTS } else { OBJECTS_IN_SMOKE };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("embedded");
    write_file(&file, objects);
    let stored: usize = (0..objects)
        .map(|number| key(number).len() + value(number).len())
        .sum();
    let each = |bytes: usize| bytes as f64 / objects as f64;
    println!(
        "{objects} ConfigMaps, {:.0} bytes of each stored",
        each(stored)
    );
    println!("{:44} {:>9} {:>9}", "resident", "bytes", "of stored");
    for (stage, name) in STAGES {
        let output = Command::new(std::env::current_exe().unwrap())
            .env(STAGE, stage)
            .env(FILE, &file)
            .env(COUNT, objects.to_string())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let bytes: usize = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        println!(
            "{name:44} {:>9.0} {:>9.2}",
            each(bytes),
            bytes as f64 / stored as f64
        );
    }
}

/// Returns by how much this process grows in a stage, at rest.
fn grown(stage: &str, file: &Path, objects: u64) -> usize {
    let runtime = Runtime::new().unwrap();
    let before = resident_bytes();
    let settle = if objects == OBJECTS {
        SETTLE
    } else {
        SETTLE_IN_SMOKE
    };
    let at_rest = || {
        std::thread::sleep(settle);
        resident_bytes().saturating_sub(before)
    };
    if stage == "values" {
        let values: Vec<_> = (0..objects).map(|it| (key(it), value(it))).collect();
        let grown = at_rest();
        black_box(values);
        return grown;
    }
    let (store, commits) = Embedded::open(file, Clock::real()).unwrap();
    let store: Arc<dyn Backend> = Arc::new(store);
    let feed = match stage {
        "store" => None,
        "cache" => Some(runtime.block_on(served(&store, FEW_EVENTS))),
        _ => Some(runtime.block_on(served(&store, WindowLimits::default().events_max))),
    };
    let grown = at_rest();
    drop((feed, commits));
    grown
}

/// Starts a feed and waits until its cache serves.
async fn served(backend: &Arc<dyn Backend>, events_max: usize) -> Feed {
    let source = Arc::new(etcd3::Changes::new(Arc::clone(backend), PATH_PREFIX));
    let metrics = CacheMetrics::register(&mut Registry::default());
    let (feed, reflector) = Feed::new(source, Clock::real(), metrics, Ledger::unlimited());
    let cacher = feed.add_type(TypeConfig::new("", "configmaps").with_window(WindowLimits {
        events_max,
        ..WindowLimits::default()
    }));
    tokio::spawn(reflector.run(std::future::pending()));
    cacher.ready().await.unwrap();
    feed
}

/// Writes the objects into a file, and returns when the file is released.
fn write_file(path: &Path, objects: u64) {
    let (store, commits) = Embedded::open(path, Clock::real()).unwrap();
    let committing = std::thread::spawn(move || commits.run());
    let write = |number| {
        let put = Op::Put {
            key: key(number),
            value: value(number),
            lease: None,
        };
        store.txn(Txn {
            // A key that is not there: the write is always made.
            compare: Compare::Version("none".to_owned(), 0),
            then: put,
            otherwise: None,
        })
    };
    let writes = futures::stream::iter((0..objects).map(write));
    let written = writes
        .buffer_unordered(WRITERS)
        .for_each(|outcome| async move { drop(outcome.unwrap()) });
    Runtime::new().unwrap().block_on(written);
    drop(store);
    committing.join().unwrap();
}

fn key(number: u64) -> String {
    format!("{PATH_PREFIX}/configmaps/load/object-{number:07}")
}

fn value(number: u64) -> Bytes {
    let object = json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": format!("object-{number:07}"), "namespace": "load",
            "uid": format!("00000000-0000-0000-0000-{number:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "load", "shard": format!("s{}", number % 64)},
            "managedFields": [{"manager": "load", "operation": "Update", "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {".": {}, "f:payload": {}},
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:shard": {}}}}}]},
        "data": {"payload": "x".repeat(DATA_BYTES)},
    });
    let bytes = codec::encode_value(&object).unwrap();
    bytes.into_boxed_slice().into()
}
