//! Requests with large work: their threads, turns, queue and memory.

use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread::ThreadId;

use prometheus_client::encoding::text::encode;
use ringwatch::budget::Account;
use ringwatch_flowcontrol::Lane;
use ringwatch_http::full;
use ringwatch_offload::{offload, offload_if_large};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::*;

/// Starts a thread that works, and one that lets requests ask for their turns.
fn threads() -> tokio::runtime::Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).build().expect("threads")
}

fn large_work(threads: &Handle, ledger: &Ledger) -> LargeWork {
    let threads = RuntimeHandles {
        large: threads.clone(),
        expressions: threads.clone(),
        background: threads.clone(),
    };
    let (ledger, clock) = (ledger.clone(), Clock::real());
    LargeWork::new(&threads, ledger, clock, &mut Registry::default())
}

/// Runs a test and ends the threads where that may block.
fn run(test: impl AsyncFnOnce(LargeWork, Ledger)) {
    let threads = threads();
    let ledger = Ledger::new(1 << 30);
    let large = large_work(threads.handle(), &ledger);
    let here = Builder::new_current_thread().build().expect("a runtime");
    here.block_on(test(large, ledger));
}

fn user(name: &str) -> Requester {
    Requester {
        name: name.into(),
        ..Requester::default()
    }
}

fn thread_id() -> ThreadId {
    std::thread::current().id()
}

/// Returns the value of a metric, with its labels.
fn shown(large: &LargeWork, name: &str) -> String {
    let mut registry = Registry::default();
    large.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).expect("text");
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("no {name} in {text}"))
        .to_owned()
}

#[test]
fn large_work_is_done_on_another_thread_and_small_work_here() {
    run(async |large, ledger| {
        let worker = thread_id();
        let small = async move {
            offload_if_large(Work::Body, b"{}").await;
            assert_eq!(thread_id(), worker);
            Response::new(full("small"))
        };
        let answer = large.answer(Box::pin(small), &user("ann")).await;
        assert_eq!(answer.status(), 200);
        let counted = ledger.clone();
        let heavy = async move {
            offload_if_large(Work::Body, &[b'x'; 1 << 20]).await;
            assert_ne!(thread_id(), worker);
            assert_eq!(counted.total(), 16 << 20);
            Response::new(full("large"))
        };
        let answer = large.answer(Box::pin(heavy), &user("ann")).await;
        assert_eq!(answer.status(), 200);
    });
}

#[test]
fn more_than_there_is_room_for_are_told_to_come_again() {
    run(async |large, _| {
        let request = || -> AnswerFuture {
            Box::pin(async move {
                offload(Work::Expressions).await;
                std::future::pending().await
            })
        };
        let (ann, eve) = (user("ann"), user("eve"));
        let mut waiting = Vec::new();
        let refused = loop {
            let mut request = Box::pin(large.answer(request(), &ann));
            match futures::poll!(&mut request) {
                Poll::Ready(refused) => break refused,
                Poll::Pending => waiting.push(request),
            }
        };
        assert_eq!(refused.status(), 429);
        assert!(refused.headers().contains_key("retry-after"));
        let refusals = "ringwatch_large_work_refused_total{work=\"expressions\"}";
        assert_eq!(shown(&large, refusals), "1");
        let requests = shown(&large, "ringwatch_large_work_requests");
        assert_eq!(requests, waiting.len().to_string());
        let mut another = Box::pin(large.answer(request(), &eve));
        assert!(futures::poll!(&mut another).is_pending());
        drop((waiting, another));
        // There is room once the requests that took it have ended.
        while !large.expressions.queue.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(shown(&large, "ringwatch_large_work_requests"), "0");
        let mut next = Box::pin(large.answer(request(), &ann));
        assert!(futures::poll!(&mut next).is_pending());
    });
}

/// Returns a request that keeps its thread until it is told to end, with what tells that it has begun and what ends it.
fn long_request() -> (AnswerFuture, oneshot::Receiver<()>, mpsc::Sender<()>) {
    let (end, ended) = mpsc::channel();
    let (begin, begun) = oneshot::channel();
    let request = Box::pin(async move {
        offload(Work::Object).await;
        begin.send(()).expect("the test waits");
        let _ = ended.recv();
        Response::new(full(""))
    });
    (request, begun, end)
}

#[test]
fn a_user_with_much_work_delays_nobody_who_has_little() {
    run(async |large, _| {
        let (long, begun, end) = long_request();
        let order = Arc::new(Mutex::new(Vec::new()));
        let request = |name: &'static str| -> AnswerFuture {
            let order = Arc::clone(&order);
            Box::pin(async move {
                offload_if_large(Work::Body, &[b'x'; 1 << 20]).await;
                order.lock().expect("whole").push(name);
                Response::new(full(""))
            })
        };
        let (mallory, ann) = (user("mallory"), user("ann"));
        let node = Requester {
            lane: Lane::Nodes,
            ..user("node")
        };
        let mut running = Box::pin(large.answer(long, &mallory));
        assert!(futures::poll!(&mut running).is_pending());
        begun.await.expect("it runs");
        let mut waiting = Vec::new();
        for _ in 0..20 {
            waiting.push(Box::pin(large.answer(request("mallory"), &mallory)));
        }
        waiting.push(Box::pin(large.answer(request("ann"), &ann)));
        waiting.push(Box::pin(large.answer(request("node"), &node)));
        for request in &mut waiting {
            assert!(futures::poll!(request).is_pending());
        }
        // Requests that their clients give up leave the queue.
        drop(waiting.drain(..10));
        while large.large.turns.waiting() != 12 {
            tokio::task::yield_now().await;
        }
        end.send(()).expect("it runs");
        for request in waiting {
            assert_eq!(request.await.status(), 200);
        }
        assert_eq!(running.await.status(), 200);
        let order = order.lock().expect("whole").clone();
        assert_eq!(order[..2], ["node", "ann"]);
        assert_eq!(order.len(), 12);
    });
}

#[test]
fn a_body_is_counted_as_memory_while_it_waits() {
    run(async |large, ledger| {
        let (long, begun, end) = long_request();
        let waits: AnswerFuture = Box::pin(async move {
            offload_if_large(Work::Body, &[b'x'; 1 << 20]).await;
            Response::new(full(""))
        });
        let ann = user("ann");
        let mut running = Box::pin(large.answer(long, &ann));
        assert!(futures::poll!(&mut running).is_pending());
        begun.await.expect("it runs");
        let before = ledger.total();
        let mut waits = Box::pin(large.answer(waits, &ann));
        assert!(futures::poll!(&mut waits).is_pending());
        assert_eq!(ledger.total(), before + (1 << 20));
        end.send(()).expect("it runs");
        assert_eq!(waits.await.status(), 200);
        assert_eq!(running.await.status(), 200);
        assert_eq!(ledger.total(), 0);
    });
}

#[test]
fn requests_go_on_one_at_a_time_when_memory_is_short() {
    run(async |large, ledger| {
        let mut objects = ledger.share(Account::Objects);
        objects.set(ledger.limit());
        let (first, started) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let ann = user("ann");
        let one: AnswerFuture = Box::pin(async {
            offload(Work::Object).await;
            let _ = first.send(());
            let _ = ended.await;
            Response::new(full("first"))
        });
        let other: AnswerFuture = Box::pin(async {
            offload(Work::Object).await;
            Response::new(full("second"))
        });
        let (first, second) = (large.answer(one, &ann), large.answer(other, &ann));
        let (mut first, mut second) = (Box::pin(first), Box::pin(second));
        assert!(futures::poll!(&mut first).is_pending());
        started.await.expect("the first runs");
        assert!(futures::poll!(&mut second).is_pending());
        while large.alone.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ledger.total(), ledger.limit());
        end.send(()).expect("the first waits");
        assert_eq!(first.await.status(), 200);
        assert_eq!(second.await.status(), 200);
    });
}

/// Returns the order in which requests end that begin at once while memory is short. Each waits for so many seconds.
async fn order_without_memory(requests: &[(&'static str, Lane, u64)]) -> Vec<&'static str> {
    let ledger = Ledger::new(1 << 30);
    let mut objects = ledger.share(Account::Objects);
    objects.set(ledger.limit());
    let large = large_work(&Handle::current(), &ledger);
    let order = Arc::new(Mutex::new(Vec::new()));
    let answers = requests.iter().map(|&(name, lane, seconds)| {
        let (order, clock) = (Arc::clone(&order), Clock::real());
        let large = large.clone();
        let request: AnswerFuture = Box::pin(async move {
            offload(Work::Object).await;
            clock.sleep(Duration::from_secs(seconds)).await;
            order.lock().expect("whole").push(name);
            Response::new(full(""))
        });
        let requester = Requester {
            lane,
            name: name.into(),
        };
        async move { large.answer(request, &requester).await.status() }
    });
    for status in futures::future::join_all(answers).await {
        assert_eq!(status, 200);
    }
    let order = order.lock().expect("whole");
    order.clone()
}

#[tokio::test(start_paused = true)]
async fn while_memory_is_short_users_pay_for_the_time_that_others_wait() {
    let (mallory, ann) = ("mallory", "ann");
    let requests = [(mallory, 10), (mallory, 0), (ann, 0), (ann, 0)];
    let requests = requests.map(|(name, seconds)| (name, Lane::Others, seconds));
    let order = order_without_memory(&requests).await;
    assert_eq!(order, [mallory, ann, ann, mallory]);
}

#[tokio::test(start_paused = true)]
async fn while_memory_is_short_kubelets_and_administrators_wait_for_no_user() {
    let requests = [
        ("mallory", Lane::Others, 10),
        ("node", Lane::Nodes, 1),
        ("admin", Lane::Administrators, 1),
    ];
    let order = order_without_memory(&requests).await;
    assert_eq!(order, ["node", "admin", "mallory"]);
}

#[test]
fn a_panic_is_that_of_the_request() {
    run(async |large, _| {
        let request: AnswerFuture = Box::pin(async {
            offload(Work::Expressions).await;
            panic!("as asked")
        });
        let ann = user("ann");
        let answer = std::panic::AssertUnwindSafe(large.answer(request, &ann));
        let panic = futures::FutureExt::catch_unwind(answer).await;
        assert!(panic.is_err());
    });
}

#[test]
fn a_request_ends_with_its_client() {
    run(async |large, _| {
        let (ended, dropped) = oneshot::channel::<()>();
        let request: AnswerFuture = Box::pin(async move {
            let _ended = ended;
            offload(Work::Expressions).await;
            std::future::pending().await
        });
        let ann = user("ann");
        let mut answer = Box::pin(large.answer(request, &ann));
        assert!(futures::poll!(&mut answer).is_pending());
        drop(answer);
        assert!(dropped.await.is_err(), "the request has been dropped");
    });
}
