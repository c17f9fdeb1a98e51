//! The cost of handing an event to a watcher, over real sockets without TLS, beside a bare loop that writes the same
//! bytes to as many sockets.
//!
//! All figures are processor time of this process, user and system; the clients are another one. A
//! round is over when every client has got it, so that no event finds another still on its way.
//!
//! `cargo bench --package ringwatch-cli --bench delivery` prints a table at the end: what each row costs a delivery,
//! and how many times its floor that is.
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

mod clients;
mod floor;
#[path = "../support/serving.rs"]
mod serving;
mod watches;

use std::time::Duration;

use criterion::{Criterion, Throughput};

use self::clients::Speech;
use self::floor::Floor;
use self::serving::{median, processor_time};
use self::watches::Watches;

/// The request of every watcher: changes from now on, and no bookmarks.
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=0&sendInitialEvents=false\
                     &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3600";

/// The number of watchers.
const WATCHERS: usize = 1_000;
/// The number of watchers when only the bench itself is tried.
const WATCHERS_TRIED: usize = 20;
/// The approximate size of an event in bytes: sixteen fit into 16 KiB.
const EVENT_BYTES: usize = 1_000;
/// The number of events that wait for a watcher at a time, where several do.
const PENDING: usize = 16;

/// A row of the table.
struct Row {
    name: &'static str,
    /// Microseconds a delivery.
    measured: Vec<f64>,
}

/// Sends a round of events to all watchers, and waits until they have it.
trait Rounds {
    fn round(&mut self);
}

fn main() {
    if clients::ran() {
        return;
    }
    // As criterion sees it: only `cargo bench` asks for figures.
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let tried = given("--test") || !given("--bench");
    let watchers = if tried { WATCHERS_TRIED } else { WATCHERS };
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    let http = |speech, events| {
        move || -> Box<dyn Rounds> { Box::new(Watches::new(speech, watchers, events)) }
    };
    let floor = |events| move || -> Box<dyn Rounds> { Box::new(Floor::new(watchers, events)) };
    let mut rows = Vec::new();
    let mut measure = |name, events, make: &dyn Fn() -> Box<dyn Rounds>| {
        rows.push(row(&mut criterion, name, watchers * events, make));
    };
    measure("a write each", 1, &floor(1));
    measure("HTTP/1.1, one event", 1, &http(Speech::Http1, 1));
    measure("HTTP/2, one event", 1, &http(Speech::Http2, 1));
    measure("16 in a writev each", PENDING, &floor(PENDING));
    measure(
        "HTTP/1.1, 16 events",
        PENDING,
        &http(Speech::Http1, PENDING),
    );
    measure("HTTP/2, 16 events", PENDING, &http(Speech::Http2, PENDING));
    criterion.final_summary();
    let floors = [0, 0, 0, 3, 3, 3];
    for (row, floor) in rows.iter().zip(floors) {
        let (cost, floor) = (median(&row.measured), median(&rows[floor].measured));
        println!(
            "{:24} {cost:8.2} us a delivery  {:6.2} x",
            row.name,
            cost / floor
        );
    }
}

/// Measures rounds.
fn row(
    criterion: &mut Criterion,
    name: &'static str,
    deliveries: usize,
    make: &dyn Fn() -> Box<dyn Rounds>,
) -> Row {
    let mut measured = Vec::new();
    let mut made = None;
    let mut group = criterion.benchmark_group("processor time of deliveries");
    group.throughput(Throughput::Elements(deliveries as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|count| {
            let rounds = made.get_or_insert_with(make);
            let before = processor_time();
            for _ in 0..count {
                rounds.round();
            }
            let spent = processor_time() - before;
            let delivered = count as f64 * deliveries as f64;
            measured.push(spent.as_secs_f64() * 1e6 / delivered);
            spent
        });
    });
    group.finish();
    Row { name, measured }
}
