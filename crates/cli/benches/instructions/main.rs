//! A regression guard: how many instructions requests take from their bytes to the answer's, counted by callgrind, and
//! how many allocations of how many bytes, counted by DHAT, beside a budget each.
//!
//! Requests come as a connection would bring them, without sockets and TLS, to a server over a store in memory whose
//! tasks all run on this thread. So a count has the filters, the registry, the codec and that store. Between two
//! requests some seconds pass, as between two renewals of a kubelet, in which the watch cache takes the change,
//! uncounted. See the bench `instructions` of the engine for how it is run.
//!
//! The budgets are those of the build of the tests, since a release build of the whole server would take the gate
//! minutes: `cargo test --workspace --bench write_instructions -- --bench`. `cargo bench` tells the counts of a release
//! build.
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
#[allow(dead_code, reason = "nothing is listed")]
#[path = "../support/serving.rs"]
mod serving;

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_testing::callgrind;
use ringwatch_testing::dhat::{self, Allocated};
use ringwatch_testing::instruction_budgets::{Counted, compare, renew, show};
use tokio::runtime::Runtime;

use self::requests::{REQUESTS, Subject};
use self::serving::Serving;

/// The number of times that a request is counted: this spreads what happens only now and then, such as the growing of a
/// table.
const TIMES: u64 = 20;
/// The time between two requests. It is no multiple of the periods of the server's tasks, so that none runs beside a
/// request.
const PAUSE: Duration = Duration::from_millis(9_973);
/// The folder of the package that has the budgets.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    if let Some(name) = callgrind::counted_path(&arguments) {
        let subject = REQUESTS.iter().find(|subject| subject.name == name);
        Server::start().run(subject.unwrap(), TIMES);
        return ExitCode::SUCCESS;
    }
    if given("--test") || !given("--bench") {
        // Each has a server of its own, since several create the same object first.
        REQUESTS
            .iter()
            .for_each(|subject| Server::start().run(subject, 1));
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_here() {
        println!("SKIPPED write_instructions: no valgrind; run scripts/setup gate");
        return ExitCode::SUCCESS;
    }
    let counts = REQUESTS.iter().map(|subject| Counted {
        name: subject.name,
        instructions: callgrind::count(subject.name) / TIMES,
        allocated: Some(allocated(subject.name)),
    });
    match (cfg!(debug_assertions), given("--renew")) {
        (true, true) => renew(PACKAGE, counts),
        (true, false) => return compare(PACKAGE, counts),
        (false, _) => show(counts),
    }
    ExitCode::SUCCESS
}

/// Returns what a request allocates.
fn allocated(name: &str) -> Allocated {
    let Allocated { allocations, bytes } = dhat::count(name);
    Allocated {
        allocations: allocations / TIMES,
        bytes: bytes / TIMES,
    }
}

/// A server whose requests are answered on this thread.
struct Server {
    runtime: Runtime,
    serving: Serving,
}

impl Server {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        // Paused, time passes at once when all tasks wait for it.
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        let serving = runtime.block_on(async {
            let start = Timestamp::from_second(1_767_225_600).unwrap();
            Serving::start_by(Clock::stepped(start), &[], []).await
        });
        Self { runtime, serving }
    }

    /// Makes what a request needs and has it answered, first uncounted and then so often.
    fn run(&self, subject: &Subject, times: u64) {
        let mut last = None;
        for (number, first) in subject.first.iter().enumerate() {
            if number > 0 {
                self.pause();
            }
            last = Some(self.answer(first(), false));
        }
        for number in 0..=times {
            self.pause();
            let mut request = Some((subject.request)(number, last.as_ref()));
            let mut answered = None;
            let mut once = || answered = request.take().map(|it| self.answer(it, subject.is_watch));
            if number == 0 {
                once();
            } else {
                callgrind::collect_instructions(&mut once);
            }
            last = answered;
        }
    }

    fn pause(&self) {
        self.runtime
            .block_on(async { tokio::time::sleep(PAUSE).await });
    }

    fn answer(&self, request: http::Request<Bytes>, is_watch: bool) -> Bytes {
        let (head, body) = request.into_parts();
        let answer = async {
            let answer = self
                .serving
                .server
                .answer(http::Request::from_parts(head, body))
                .await;
            let status = answer.status();
            if is_watch {
                assert!(status.is_success(), "{status}");
                return Bytes::new();
            }
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(status.is_success(), "{status}: {body:?}");
            body
        };
        self.runtime.block_on(answer)
    }
}
