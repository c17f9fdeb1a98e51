//! The cost of moving a request to the threads for large work, beside reading a body of the size from which on that is
//! done.
//!
//! The move should be a small part of that reading, and a request that stays should not notice that it could have
//! moved.
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use http::Response;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_filters::LargeWork;
use ringwatch_filters::threads::RuntimeHandles;
use ringwatch_flowcontrol::Requester;
use ringwatch_http::full;
use ringwatch_offload::{LARGE_BYTES, Work, offload_if_large};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// The least bytes on which a request works that moves.
const CONTENT: &[u8] = &[b'x'; LARGE_BYTES + 1];

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let (serving, threads) = (runtime(), runtime());
    let runtimes = RuntimeHandles {
        large: threads.handle().clone(),
        expressions: threads.handle().clone(),
        background: threads.handle().clone(),
    };
    let (ledger, clock) = (Ledger::unlimited(), Clock::real());
    let large = LargeWork::new(&runtimes, ledger, clock, &mut Registry::default());
    for (name, content) in [("stays", &CONTENT[..0]), ("moves", CONTENT)] {
        criterion.bench_function(&format!("large_work/{name}"), |bencher| {
            bencher.iter(|| {
                // A request is answered from a task, as those of connections are.
                let large = large.clone();
                let request = serving.spawn(async move {
                    let answer = Box::pin(async move {
                        offload_if_large(Work::Body, content).await;
                        Response::new(full(""))
                    });
                    large.answer(answer, &Requester::default()).await
                });
                serving.block_on(request).unwrap()
            });
        });
    }
    let body = body();
    criterion.bench_function("large_work/read_a_tree", |bencher| {
        bencher.iter(|| serde_json::from_str::<Value>(black_box(&body)).unwrap());
    });
    criterion.final_summary();
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).build().unwrap()
}

/// A ConfigMap of as many bytes as a request that stays has at most.
fn body() -> String {
    let mut body =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"#.to_owned();
    for number in 0.. {
        if body.len() + 40 > LARGE_BYTES {
            break;
        }
        write!(body, r#""key{number}":"value{number}","#).unwrap();
    }
    body + r#""last":""}}"#
}
