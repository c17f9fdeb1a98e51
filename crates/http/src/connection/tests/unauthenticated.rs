//! Clients without credentials: how much they may send, how long they may take, and when they have to go.
//!
//! Time passes by itself while nothing happens, so what is asserted is when the server acts, not how fast it is.

use http::header::AUTHORIZATION;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use ringwatch::budget::Account;
use ringwatch::clock::Clock;
use tokio::task::JoinHandle;

use super::*;

/// A head that a client without credentials may not send.
const LARGE_HEAD_BYTES: usize = 100 << 10;

/// The server acts within this time.
const MINUTES_MAX: u64 = 10;

/// Returns a connection on which nothing has been sent.
async fn connect(ledger: &Ledger, protocol: Protocol) -> (DuplexStream, JoinSet<()>) {
    let (io, server) = tokio::io::duplex(1 << 20);
    let connections = testing::connections(Arc::new(Stub), ledger, &testing::certificates());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        connections.serve_http(server, protocol).await;
    });
    (io, tasks)
}

/// Returns how long the server goes on with the connection, in seconds from now.
async fn seconds_until_end(mut tasks: JoinSet<()>) -> u64 {
    let clock = Clock::real();
    let began = clock.now();
    let at_most = Duration::from_secs(60 * MINUTES_MAX);
    let ended = tokio::time::timeout(at_most, tasks.join_next()).await;
    assert!(ended.is_ok(), "the connection stays");
    (clock.now() - began).as_secs()
}

/// Reads everything that the server sends until it ends the connection.
async fn read_to_end(io: &mut DuplexStream) -> String {
    let mut answer = String::new();
    let at_most = Duration::from_secs(SECONDS_MAX);
    let read = tokio::time::timeout(at_most, io.read_to_string(&mut answer)).await;
    read.expect("an end").expect("text");
    answer
}

#[tokio::test(start_paused = true)]
async fn a_first_head_that_is_too_large_is_refused() {
    let (mut io, _tasks) = connect(&Ledger::unlimited(), Protocol::Http1).await;
    let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(LARGE_HEAD_BYTES));
    io.write_all(head.as_bytes()).await.expect("sent");
    let answer = read_to_end(&mut io).await;
    assert!(
        answer.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        "{answer}"
    );
}

/// Over TCP the answer would be lost if the connection were closed before everything has been read.
#[tokio::test(start_paused = true)]
async fn a_client_that_goes_on_sending_has_time_to_read_the_refusal() {
    let (mut io, tasks) = connect(&Ledger::unlimited(), Protocol::Http1).await;
    let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(9 * LARGE_HEAD_BYTES));
    io.write_all(head.as_bytes()).await.expect("sent");
    assert_eq!(seconds_until_end(tasks).await, 1);
    let answer = read_to_end(&mut io).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn a_later_head_may_be_larger() {
    let mut client = Client::connect();
    client.send(&["GET /whoami"]).await;
    client.read("ann").await;
    let large = format!("GET /whoami\nx: {}", "x".repeat(LARGE_HEAD_BYTES));
    client.send(&[&large]).await;
    let answer = client.read("ann").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_ends_the_connection_soon() {
    let (mut io, _tasks) = connect(&Ledger::unlimited(), Protocol::Http1).await;
    io.write_all(b"GET / HTTP/1.1\r\n").await.expect("sent");
    let clock = Clock::real();
    let began = clock.now();
    let answer = read_to_end(&mut io).await;
    assert!(
        answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
        "{answer}"
    );
    assert_eq!((clock.now() - began).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_nothing_is_not_answered() {
    let (mut io, _tasks) = connect(&Ledger::unlimited(), Protocol::Http1).await;
    assert_eq!(read_to_end(&mut io).await, "");
}

#[tokio::test(start_paused = true)]
async fn heads_count_as_memory() {
    let ledger = Ledger::new(1 << 30);
    let (mut io, tasks) = connect(&ledger, Protocol::Http1).await;
    let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(50 << 10));
    io.write_all(head.as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let spent = ledger.spent(Account::Connections);
    assert!(spent >= 64 << 10, "{spent} bytes");
    drop(io);
    seconds_until_end(tasks).await;
    assert_eq!(ledger.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn heads_are_refused_when_memory_is_short() {
    let ledger = Ledger::new(64 << 10);
    let (mut io, tasks) = connect(&ledger, Protocol::Http1).await;
    let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(50 << 10));
    io.write_all(head.as_bytes()).await.expect("sent");
    let answer = read_to_end(&mut io).await;
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n"),
        "{answer}"
    );
    drop(io);
    assert_eq!(seconds_until_end(tasks).await, 0);
}

/// Returns a client of HTTP/2 whose task ends with its connection.
async fn connect_h2(
    builder: &http2::Builder<TokioExecutor>,
) -> (
    http2::SendRequest<Empty<Bytes>>,
    JoinHandle<()>,
    JoinSet<()>,
) {
    connect_h2_within(&Ledger::unlimited(), builder).await
}

/// Does the same within a memory budget.
async fn connect_h2_within(
    ledger: &Ledger,
    builder: &http2::Builder<TokioExecutor>,
) -> (
    http2::SendRequest<Empty<Bytes>>,
    JoinHandle<()>,
    JoinSet<()>,
) {
    let (io, tasks) = connect(ledger, Protocol::Http2).await;
    let (sender, connection) = builder.handshake(TokioIo::new(io)).await.expect("HTTP/2");
    let driven = async move {
        let _ = connection.await;
    };
    let driver = tokio::runtime::Handle::current().spawn(driven);
    (sender, driver, tasks)
}

fn builder() -> http2::Builder<TokioExecutor> {
    http2::Builder::new(TokioExecutor::new())
}

fn get(token: Option<&str>) -> Request<Empty<Bytes>> {
    let request = Request::get("http://localhost/whoami");
    let request = match token {
        Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    };
    request.body(Empty::new()).expect("a request")
}

/// Else nobody could read `/metrics` when memory is short.
#[tokio::test(start_paused = true)]
async fn an_http2_client_is_served_when_the_memory_budget_is_spent() {
    let ledger = Ledger::new(1 << 20);
    let mut objects = ledger.share(Account::Objects);
    objects.set(2 << 20);
    let (mut sender, _driver, _tasks) = connect_h2_within(&ledger, &builder()).await;
    let answer = sender.send_request(get(Some("secret"))).await;
    assert_eq!(answer.expect("an answer").status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_asks_for_nothing_has_to_go() {
    let (_sender, _driver, tasks) = connect_h2(&builder()).await;
    assert_eq!(seconds_until_end(tasks).await, 10);
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_without_credentials_has_to_begin_anew() {
    let (mut sender, driver, tasks) = connect_h2(&builder()).await;
    let answer = sender.send_request(get(None)).await.expect("an answer");
    assert_eq!(answer.status(), 401);
    let body = answer.into_body().collect().await.expect("a body");
    assert!(!body.to_bytes().is_empty(), "the answer is whole");
    let seconds = seconds_until_end(tasks).await;
    assert!(seconds <= 2, "{seconds} s");
    driver.await.expect("no panic");
    assert!(sender.is_closed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_sent_does_not_keep_a_client_without_credentials() {
    let mut builder = builder();
    builder.initial_stream_window_size(0);
    let (mut sender, _driver, tasks) = connect_h2(&builder).await;
    let answer = sender.send_request(get(None)).await.expect("an answer");
    assert_eq!(answer.status(), 401);
    let seconds = seconds_until_end(tasks).await;
    assert!(seconds <= 62, "{seconds} s");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_ends_although_its_client_answers_pings() {
    let (mut sender, _driver, tasks) = connect_h2(&builder()).await;
    for _ in 0..3 {
        let answer = sender.send_request(get(Some("secret"))).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.expect("a body");
        // As long as there are requests from time to time it is not idle.
        tokio::time::sleep(Duration::from_secs(80)).await;
    }
    let seconds = seconds_until_end(tasks).await;
    assert!((10..=45).contains(&seconds), "{seconds} s");
}
