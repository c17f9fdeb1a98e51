//! The cost of answering a list of all objects from memory, beside a bare copy of as many bytes, and the memory that it
//! takes beside the objects themselves.
//!
//! The answer goes to a sink that drops every chunk. The floor copies one long run of bytes, chunk
//! by chunk, into a buffer that stays in the processor's cache.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_debug_implementations,
    unreachable_pub,
    reason = "nobody else uses it"
)]

#[allow(dead_code, reason = "objects are not written while lists are measured")]
#[path = "support/serving.rs"]
mod serving;

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http_body_util::BodyExt;
use ringwatch::codec;
use serde_json::Value;
use tokio::runtime::Runtime;

use self::serving::{Serving, median, memory, pod, processor_time};

/// Everything there is, as it is in memory.
const LIST: &str = "/api/v1/pods?resourceVersion=0";

/// The numbers of objects in a list: more than have room among the encodings that are kept, and few enough to have it.
const OBJECTS: [usize; 2] = [150_000, 5_000];
/// The number of objects when only the bench itself is tried.
const OBJECTS_TRIED: usize = 1_000;
/// The approximate size of an object in bytes.
const OBJECT_BYTES: usize = 1_000;
/// The number of bytes that the floor copies at a time.
const CHUNK_BYTES: usize = 32 * 1024;

/// The forms of the list, each with the media type and the encodings that ask for it.
const FORMS: [(&str, &str, &str); 3] = [
    ("JSON", "application/json", "identity"),
    (
        "protobuf",
        "application/vnd.kubernetes.protobuf",
        "identity",
    ),
    ("JSON with gzip", "application/json", "gzip"),
];

/// A function that writes a pod's JSON as it is stored.
type Write = fn(&Bytes) -> Bytes;

/// The forms in which the objects are stored, and what writes a pod so.
const STORED: [(&str, Write); 2] = [("JSON", Bytes::clone), ("protobuf", protobuf)];

fn main() {
    // As criterion sees it: only `cargo bench` asks for figures.
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let tried = given("--test") || !given("--bench");
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5))
        .configure_from_args();
    for (stored, write) in STORED {
        for objects in OBJECTS {
            let objects = if tried { OBJECTS_TRIED } else { objects };
            let pods = (0..objects).map(|number| pod(number, OBJECT_BYTES));
            let pods = pods.map(|(key, json)| (key, write(&json)));
            measure(
                &mut criterion,
                pods,
                &format!("{objects} stored as {stored}"),
            );
        }
    }
    criterion.final_summary();
}

/// Measures lists of pods in each form.
fn measure(criterion: &mut Criterion, pods: impl Iterator<Item = (String, Bytes)>, what: &str) {
    let runtime = Runtime::new().unwrap();
    let serving = runtime.block_on(Serving::start(pods));
    for (form, accept, encoding) in FORMS {
        let name = format!("{what}, in {form}");
        let before = memory("VmRSS");
        // Has the kernel forget the highest there was.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let bytes = runtime.block_on(send(&serving, accept, encoding));
        let extra = memory("VmHWM").saturating_sub(before) / 1024;
        println!("{name}: {bytes} bytes, {extra} KiB of memory for the list");
        let source = vec![1; bytes];
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut copy = || {
            for chunk in source.chunks(CHUNK_BYTES) {
                buffer[..chunk.len()].copy_from_slice(chunk);
                black_box(&mut buffer);
            }
        };
        let floor = row(criterion, &format!("{name}: a copy"), bytes, &mut copy);
        let mut list = || {
            runtime.block_on(send(&serving, accept, encoding));
        };
        let list = row(criterion, &format!("{name}: a list"), bytes, &mut list);
        println!(
            "{name}: {floor:.1} ms a copy, {list:.1} ms a list: {:.2} x",
            list / floor
        );
    }
}

/// Writes a pod's JSON as the protobuf that is stored.
fn protobuf(json: &Bytes) -> Bytes {
    let pod: Value = serde_json::from_slice(json).unwrap();
    codec::encode_value(&pod).unwrap().into()
}

/// Answers a list into a sink, and says how long it was.
async fn send(serving: &Serving, accept: &str, encoding: &str) -> usize {
    let request = Request::get(LIST)
        .header(ACCEPT, accept)
        .header(ACCEPT_ENCODING, encoding);
    let response = serving.answer(request, Bytes::new()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().into_data().unwrap().len();
    }
    bytes
}

/// Measures, and gives the median in milliseconds of processor time.
fn row(criterion: &mut Criterion, name: &str, bytes: usize, once: &mut dyn FnMut()) -> f64 {
    let mut measured = Vec::new();
    let mut group = criterion.benchmark_group("processor time of lists");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|count| {
            let before = processor_time();
            (0..count).for_each(|_| once());
            let spent = processor_time() - before;
            measured.push(spent.as_secs_f64() * 1e3 / count as f64);
            spent
        });
    });
    group.finish();
    median(&measured)
}
