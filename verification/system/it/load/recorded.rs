//! An outcome as `ringwatch load --save` writes it, with values that tell where its curves must be.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Each run's length.
const SECONDS: u32 = 20;

/// Two runs whose latencies, load and memory are known at every second. `slower` multiplies what is
/// measured of the server.
pub(super) fn outcome(slower: f64) -> Value {
    json!({
        "format": 1,
        "ringwatch": "0.1.0",
        "scenario": "fanout",
        "started": "2026-11-22T07:06:32Z",
        "setting": {"watchers": 1_000, "rate": 100.0, "http": "1", "encoding": "json"},
        "runs": [run(slower), run(slower)],
        "summary": {
            "delivery p99": figure("ms", "lower", 10.0 * slower),
            "deliveries": figure("1/s", "higher", 70_000.0),
        },
        "warnings": [],
        "verdict": {"is": "passed"},
    })
}

/// The same with an event that got lost in the second run.
pub(super) fn failed_outcome() -> Value {
    let mut outcome = outcome(1.0);
    outcome["runs"][1]["received"] = 1_399_999.into();
    outcome["runs"][1]["latency"] = Value::Null;
    outcome["runs"][1]["figures"]["delivery p99"]["value"] = 0.0.into();
    outcome["summary"]["delivery p99"]["min"] = 0.0.into();
    let reasons = json!(["run 2: 1399999 received of 1400000"]);
    outcome["verdict"] = json!({"is": "failed", "reasons": reasons});
    outcome
}

/// A median with a narrow range.
fn figure(unit: &str, better: &str, median: f64) -> Value {
    let (min, max) = (median * 0.99, median * 1.01);
    json!({"unit": unit, "better": better, "median": median, "min": min, "max": max})
}

fn run(slower: f64) -> Value {
    let percentiles = [
        (0.0, 1.0),
        (90.0, 4.0),
        (99.0, 10.0),
        (99.9, 16.0),
        (100.0, 20.0),
    ];
    let percentiles = percentiles.map(|(percentile, ms)| json!([percentile, ms * slower]));
    let seconds: Vec<Value> = (1..=SECONDS)
        .map(|at| second(f64::from(at), slower))
        .collect();
    json!({
        "seconds": SECONDS,
        "expected": 1_400_000,
        "received": 1_400_000,
        "figures": {"delivery p99": {"unit": "ms", "better": "lower", "value": 10.0 * slower}},
        "latency": {"count": 1_400_000, "percentiles": percentiles},
        "series": seconds,
        "faults": [],
    })
}

/// The median latency stands still, the high one and the memory grow in each run.
fn second(at: f64, slower: f64) -> Value {
    json!({
        "at": at,
        "sent": 70,
        "received": 70_000,
        "p50_ms": 5.0 * slower,
        "p99_ms": (10.0 + at / 2.0) * slower,
        "server_cpu": 0.75 * slower,
        "server_rss": (100.0 + at) as u64 * 1_048_576,
        "client_cpu": 0.25,
    })
}

/// Writes an outcome into a folder.
pub(super) fn save(folder: &Path, name: &str, outcome: &Value) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, outcome.to_string()).expect("a file");
    path
}
