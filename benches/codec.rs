//! The cost of transcoding between protobuf and JSON, beside that of other people's compiled types: k8s-pb for
//! protobuf, k8s-openapi with serde_json for JSON.
//!
//! The peer is given a start: it converts nothing between its two kinds of types, which are not the same.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench reads the time of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(unreachable_pub, reason = "nobody else uses it")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use k8s_openapi::api::core::v1::Pod as JsonPod;
use k8s_pb::api::core::v1::Pod as ProtobufPod;
use k8s_pb::apimachinery::pkg::runtime::Unknown;
use prost::Message;
use ringwatch::codec;
use ringwatch_testing::pod::pod;
use serde_json::Value;

/// The number of pods in a list, and the lower number when the bench itself is only tried, as by `cargo test`.
const LISTED: usize = 10_000;
const LISTED_TRIED: usize = 10;

fn main() {
    // As criterion sees it: only `cargo bench` asks for figures.
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let listed = if given("--test") || !given("--bench") {
        LISTED_TRIED
    } else {
        LISTED
    };
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();

    let sample = Sample::new();
    to_json(&mut criterion, &sample);
    to_protobuf(&mut criterion, &sample);
    lists(&mut criterion, listed, sample.json.len());
    criterion.final_summary();
}

/// A pod in the forms in which it is read.
struct Sample {
    bytes: Vec<u8>,
    json: Vec<u8>,
}

impl Sample {
    fn new() -> Self {
        let bytes = codec::encode_value(&pod("web-7d4b9c6f58-x2v7k")).unwrap();
        let json = codec::to_json(&bytes, ("", "")).unwrap();
        let (in_json, in_protobuf) = (json.len(), bytes.len());
        println!("a pod: {in_json} bytes in JSON, {in_protobuf} in protobuf");
        Self { bytes, json }
    }
}

fn to_json(criterion: &mut Criterion, sample: &Sample) {
    let Sample { bytes, json } = sample;
    let raw = raw(bytes);
    let typed: JsonPod = serde_json::from_slice(json).unwrap();
    let ours = row(criterion, "to JSON: ringwatch", json.len(), &mut || {
        black_box(codec::to_json(black_box(bytes), ("", "")).unwrap());
    });
    let name = "to JSON: k8s-pb and serde_json";
    let peer = row(criterion, name, json.len(), &mut || {
        black_box(ProtobufPod::decode(black_box(&raw[..])).unwrap());
        black_box(serde_json::to_vec(black_box(&typed)).unwrap());
    });
    let ratio = peer / ours;
    println!("to JSON: {ours:.2} us, the peer {peer:.2} us: {ratio:.2} x");
}

fn to_protobuf(criterion: &mut Criterion, sample: &Sample) {
    let Sample { bytes, json } = sample;
    let message = ProtobufPod::decode(&raw(bytes)[..]).unwrap();
    let ours = row(criterion, "to protobuf: ringwatch", json.len(), &mut || {
        black_box(codec::encode_text(black_box(json)).unwrap());
    });
    let name = "to protobuf: ringwatch, by a tree";
    let tree = row(criterion, name, json.len(), &mut || {
        let value: Value = serde_json::from_slice(black_box(json)).unwrap();
        black_box(codec::encode_value(&value).unwrap());
    });
    let name = "to protobuf: serde_json and k8s-pb";
    let peer = row(criterion, name, json.len(), &mut || {
        black_box(serde_json::from_slice::<JsonPod>(black_box(json)).unwrap());
        black_box(black_box(&message).encode_to_vec());
    });
    let (ratio, of_tree) = (peer / ours, peer / tree);
    println!("to protobuf: {ours:.2} us, the peer {peer:.2} us: {ratio:.2} x");
    println!("to protobuf by a tree: {tree:.2} us: {of_tree:.2} x");
}

fn lists(criterion: &mut Criterion, listed: usize, json_bytes: usize) {
    let stored: Vec<Vec<u8>> = (0..listed)
        .map(|number| codec::encode_value(&pod(&format!("web-{number}"))).unwrap())
        .collect();
    let name = "a list of stored pods to JSON";
    let list = row(criterion, name, listed * json_bytes, &mut || {
        for bytes in &stored {
            black_box(codec::to_json(bytes, ("", "")).unwrap());
        }
    });
    let size = stored.iter().map(Vec::len).sum();
    let copy = row(
        criterion,
        "a list of stored pods, copied",
        size,
        &mut || {
            black_box(stored.concat());
        },
    );
    let (list, copy) = (list / 1e3, copy / 1e3);
    println!("a list of {listed}: {list:.1} ms in JSON, {copy:.1} ms as it is stored");
}

/// Returns the object within the envelope.
fn raw(bytes: &[u8]) -> Vec<u8> {
    let envelope = Unknown::decode(&bytes[codec::MAGIC.len()..]).unwrap();
    envelope.raw.unwrap().to_vec()
}

/// Measures, and gives the median in microseconds.
fn row(criterion: &mut Criterion, name: &str, bytes: usize, once: &mut dyn FnMut()) -> f64 {
    let mut measured = Vec::new();
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|count| {
            let start = Instant::now();
            (0..count).for_each(|_| once());
            let spent = start.elapsed();
            measured.push(spent.as_secs_f64() * 1e6 / count as f64);
            spent
        });
    });
    group.finish();
    median(&measured)
}

/// Returns the median of some measurements.
fn median(measured: &[f64]) -> f64 {
    let mut sorted = measured.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
