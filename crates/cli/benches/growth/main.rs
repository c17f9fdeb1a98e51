//! Measures how the work for a request grows with what its client puts into it: instructions, counted by callgrind, for
//! twice as much beside those for once as much. Counts do not depend on what else the machine does, so that a gate can
//! hold to them.
//!
//! Work in linear time takes twice as much or less, since every request has a fixed part; work in quadratic time takes
//! up to four times as much. An event to the watches of a connection has a budget besides.
//!
//! The program runs itself under valgrind. Without `--bench`, as in `cargo test`, the requests are answered once, with
//! little in them, and nothing is counted.
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

mod requests;
#[allow(dead_code, reason = "nothing is measured in time or bytes")]
#[path = "../support/serving.rs"]
mod serving;
mod watch_streams;

use std::process::ExitCode;
use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt;
use ringwatch::clock::Clock;
use ringwatch_testing::callgrind;
use tokio::runtime::Runtime;

use self::requests::{FIRST, Growing, Message, REQUESTS};
use self::serving::Serving;
use self::watch_streams::Streams;

/// Twice as much may take so many times as many instructions. Sorting and the growing of tables take it a little above
/// 2.
const RATIO_MAX: f64 = 2.3;

/// The size of requests that only make everything ready.
const LITTLE: usize = 8;

/// Lets lists select a shard.
const SHARDS: &str = "--feature-gates=ShardedListAndWatch=true";

/// The definition of custom resources has so long to be served.
const SERVED_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if callgrind::counted_path(&arguments).is_some() {
        Server::start().run(|size, answer| {
            for size in [size, 2 * size] {
                answer(size, &mut |once| callgrind::collect_apart(once));
            }
        });
        return ExitCode::SUCCESS;
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        Server::start().run(|_, _| {});
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_here() {
        println!("SKIPPED growth: no valgrind; run scripts/setup gate");
        return ExitCode::SUCCESS;
    }
    compare(&callgrind::count_calls("all"))
}

/// Says which requests grow faster than what is in them, and whether an event to a watch costs more than it may.
fn compare(counts: &[u64]) -> ExitCode {
    let requests = REQUESTS.iter().map(|request| (request.name, request.size));
    let rows = requests.chain([(watch_streams::NAME, watch_streams::SIZE)]);
    let (of_requests, of_events) = counts.split_at(2 * REQUESTS.len());
    // Among the events falls what else the server has to do, such as the rest of the watches' beginning.
    let of_events = of_events.chunks_exact(watch_streams::EVENTS);
    let of_event = of_events.filter_map(|counts| counts.iter().copied().min());
    let counts: Vec<_> = of_requests.iter().copied().chain(of_event).collect();
    let rows: Vec<_> = rows.zip(counts.chunks_exact(2)).collect();
    assert_eq!(rows.len(), REQUESTS.len() + 1, "two counts for each");
    let mut over = Vec::new();
    println!(
        "{:28} {:>8} {:>14} {:>14} ratio",
        "request", "of", "once", "twice"
    );
    for ((name, size), counts) in &rows {
        let (once, twice) = (counts[0], counts[1]);
        let ratio = twice as f64 / once as f64;
        let said = if ratio > RATIO_MAX { "OVER" } else { "" };
        println!("{name:28} {size:>8} {once:>14} {twice:>14} {ratio:>5.2} {said}");
        if ratio > RATIO_MAX {
            over.push(*name);
        }
    }
    if !over.is_empty() {
        println!(
            "their work grows faster than what is in them: {}",
            over.join(", ")
        );
        return ExitCode::FAILURE;
    }
    rows.last()
        .map_or(ExitCode::FAILURE, |(_, counts)| compare_delivery(counts))
}

/// Compares the instructions of an event to one more stream with their budget.
fn compare_delivery(counts: &[u64]) -> ExitCode {
    let more = counts[1].saturating_sub(counts[0]) / watch_streams::SIZE as u64;
    let budget = watch_streams::INSTRUCTIONS_MAX;
    println!("an event to one more stream takes {more} instructions of {budget}");
    if more > budget {
        println!("it is over its budget; CONTRIBUTING.md says what to do");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// A server whose requests are answered on this thread.
struct Server {
    runtime: Runtime,
    serving: Serving,
}

/// Runs something once.
type Runner<'a> = &'a mut dyn FnMut(&mut dyn FnMut());

impl Server {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let serving = runtime.block_on(Serving::start_by(Clock::real(), &[SHARDS], []));
        let server = Self { runtime, serving };
        server.furnish();
        server
    }

    /// Makes what the requests need, and has custom resources served.
    fn furnish(&self) {
        for (uri, body) in FIRST {
            let (status, text) = self.answer(Message::post(uri, body));
            assert_eq!(status, StatusCode::CREATED, "{uri}: {text}");
        }
        let wait = async {
            let list = || http::Request::get("/apis/example.com/v1/namespaces/default/shelves");
            while self
                .serving
                .answer(list(), Default::default())
                .await
                .status()
                != StatusCode::OK
            {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let served = async { tokio::time::timeout(SERVED_MAX, wait).await };
        self.runtime.block_on(served).unwrap();
    }

    /// Makes every request once with little in it, and then lets `count` have those answered that are counted.
    fn run(&self, count: impl Fn(usize, &dyn Fn(usize, Runner<'_>))) {
        for request in REQUESTS {
            let answer = |size: usize, runner: Runner<'_>| self.run_one(request, size, runner);
            answer(LITTLE, &mut |once| once());
            count(request.size, &answer);
        }
        let deliver = |size: usize, runner: Runner<'_>| self.deliver(size, runner);
        deliver(LITTLE, &mut |once| once());
        count(watch_streams::SIZE, &deliver);
    }

    /// Sends events to so many watches of a connection, each of which is counted apart.
    fn deliver(&self, streams: usize, runner: Runner<'_>) {
        let opening = Streams::open(&self.serving, streams);
        let mut streams = self.runtime.block_on(opening);
        for _ in 0..watch_streams::EVENTS {
            runner(&mut || {
                self.runtime.block_on(streams.get_event(&self.serving));
            });
        }
    }

    fn run_one(&self, request: &Growing, size: usize, runner: Runner<'_>) {
        if let Some(first) = request.first {
            let (status, text) = self.answer(first(size));
            assert!(status.is_success(), "{}: {text}", request.name);
        }
        let mut message = Some((request.message)(size));
        let mut answer = None;
        runner(&mut || answer = message.take().map(|message| self.answer(message)));
        let (status, text) = answer.unwrap();
        assert_eq!(status, request.status, "{}: {text}", request.name);
    }

    fn answer(&self, message: Message) -> (StatusCode, String) {
        let answer = async {
            let answer = self.serving.answer(message.head, message.body.into()).await;
            let (head, body) = answer.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            (head.status, String::from_utf8_lossy(&body).into_owned())
        };
        self.runtime.block_on(answer)
    }
}
