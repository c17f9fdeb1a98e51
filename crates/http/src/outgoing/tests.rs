//! Clients that do not read, over real HTTP: what they cost, and that they cost it to nobody else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use super::*;
use crate::body::{RequestBody, ResponseBody};
use crate::connection::{Connections, Protocol};
use crate::testing::{self, Handler};

/// The size of a chunk of a watch.
const CHUNK_BYTES: usize = 16 << 10;

/// Bytes that the layer below HTTP takes.
const PIPE_BYTES: usize = 64 << 10;

/// The window of a stream that a client does not read: not a whole number of chunks.
const STREAM_WINDOW_BYTES: u32 = (64 << 10) - 1;

/// The number of streams that a connection may have.
const STREAMS: u64 = 100;

/// Bodies that never end, and a count of what they have handed over.
#[derive(Default)]
struct Endless {
    handed_over: Arc<AtomicUsize>,
}

#[async_trait]
impl Handler for Endless {
    async fn handle(&self, request: Request<RequestBody>, _: &str) -> Response<ResponseBody> {
        if request.uri().path() == "/short" {
            return Response::new(full("short"));
        }
        if request.uri().path() == "/whole" {
            return Response::new(full(vec![b'x'; 1 << 20]));
        }
        let handed_over = Arc::clone(&self.handed_over);
        let chunks = futures::stream::repeat_with(move || {
            handed_over.fetch_add(CHUNK_BYTES, Ordering::SeqCst);
            Ok(Frame::data(Bytes::from_static(&[b'x'; CHUNK_BYTES])))
        });
        Response::new(StreamBody::new(chunks).boxed_unsync())
    }
}

struct Fixture {
    ledger: Ledger,
    handed_over: Arc<AtomicUsize>,
    connections: Connections,
    tasks: JoinSet<()>,
}

impl Fixture {
    fn new() -> Self {
        let endless = Endless::default();
        let handed_over = Arc::clone(&endless.handed_over);
        let ledger = Ledger::new(1 << 30);
        let certificates = testing::certificates();
        let connections = testing::connections(Arc::new(endless), &ledger, &certificates);
        Self {
            ledger,
            handed_over,
            connections,
            tasks: JoinSet::new(),
        }
    }

    /// Opens a connection over a pipe within the process and serves it.
    fn connect(&mut self, protocol: Protocol) -> TokioIo<DuplexStream> {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        let connections = self.connections.clone();
        self.tasks.spawn(async move {
            connections.serve_http(server, protocol).await;
        });
        TokioIo::new(client)
    }

    async fn connect_h2(&mut self) -> http2::SendRequest<Empty<Bytes>> {
        let io = self.connect(Protocol::Http2);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(1 << 30)
            .handshake(io)
            .await
            .expect("HTTP/2");
        self.tasks.spawn(async move {
            let _ = connection.await;
        });
        sender
    }

    fn spent(&self) -> u64 {
        self.ledger.spent(Account::Connections)
    }

    /// Waits until the clients, which have gone, cost nothing any more.
    async fn nothing_is_left(&mut self) {
        let ended = async {
            while self.tasks.join_next().await.is_some() {}
            // Streams are tasks of their own, which hear of the end a little later.
            while self.ledger.total() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        assert!(ended.is_ok(), "{} bytes are left", self.ledger.total());
    }

    /// Lets everything happen that can happen without the client; tells what was handed over.
    async fn settled(&self) -> u64 {
        let mut handed_over = self.handed_over.load(Ordering::SeqCst);
        for _ in 0..100 {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let now = self.handed_over.load(Ordering::SeqCst);
            if now == handed_over && now > 0 {
                return now as u64;
            }
            handed_over = now;
        }
        panic!("the server goes on reading bodies: {handed_over} bytes by now");
    }
}

/// Waits for something with a client's connection, which is polled meanwhile and no longer.
async fn driven<T>(
    connection: &mut (impl Future + Unpin),
    wanted: &mut (impl Future<Output = T> + Unpin),
) -> T {
    std::future::poll_fn(|context| {
        let _ = Pin::new(&mut *connection).poll(context);
        Pin::new(&mut *wanted).poll(context)
    })
    .await
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://localhost{path}"))
        .header("host", "localhost")
        .header(AUTHORIZATION, "Bearer secret")
        .body(Empty::new())
        .expect("a request")
}

async fn text(response: Response<hyper::body::Incoming>) -> Bytes {
    let limit = Duration::from_secs(60);
    let body = tokio::time::timeout(limit, response.into_body().collect()).await;
    body.expect("in time").expect("a body").to_bytes()
}

/// A client that sends its request and then reads nothing at all, not even its socket.
#[tokio::test]
async fn an_http1_client_that_never_reads_costs_a_bounded_amount() {
    let mut fixture = Fixture::new();
    let io = fixture.connect(Protocol::Http1);
    let (mut sender, connection) = http1::handshake(io).await.expect("HTTP/1.1");
    let mut connection = Box::pin(connection);
    let mut response = Box::pin(sender.send_request(get("/api/v1/pods?watch=1")));
    // The client is driven until the head has come, and then no more.
    let head = driven(&mut connection, &mut response).await;
    let response = head.expect("a head");
    let handed_over = fixture.settled().await;
    let below = BELOW_BYTES + PIPE_BYTES as u64 + 8_192 * 64;
    assert!(
        handed_over <= OUTGOING_BYTES_MAX + CHUNK_BYTES as u64 + below,
        "{handed_over} bytes were handed over"
    );
    let bound = OUTGOING_BYTES_MAX + CHUNK_BYTES as u64 + BELOW_BYTES + 2 * CONNECTION_BYTES;
    assert!(fixture.spent() <= bound, "{} spent", fixture.spent());
    assert!(fixture.spent() > CONNECTION_BYTES, "something is pending");
    drop((response, sender, connection));
    fixture.nothing_is_left().await;
}

/// A client with as many streams as it may have, none of which it reads, and whose flow control
/// would let the server send without end. Other clients notice nothing.
#[tokio::test]
async fn an_http2_client_that_never_reads_its_streams_costs_a_bounded_amount() {
    let mut fixture = Fixture::new();
    let io = fixture.connect(Protocol::Http2);
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        // As clients in Go do: flow control lets through more than the server should hold.
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(1 << 30)
        .handshake::<_, Empty<Bytes>>(io)
        .await
        .expect("HTTP/2");
    let mut connection = Box::pin(connection);
    let mut responses = Vec::new();
    for _ in 0..STREAMS {
        let mut response = Box::pin(sender.send_request(get("/api/v1/pods?watch=1")));
        let head = driven(&mut connection, &mut response).await;
        responses.push(head.expect("a head"));
    }
    // From here on the client does not even look at its socket.
    fixture.settled().await;
    let spent = fixture.spent();
    assert!(spent > OUTGOING_BYTES_MAX, "all that is allowed is pending");
    assert!(spent <= bound_of_streams(), "{spent} spent");

    let mut other = fixture.connect_h2().await;
    let response = other.send_request(get("/short")).await.expect("a response");
    assert_eq!(text(response).await, "short");
    drop((responses, other, sender, connection));
    fixture.nothing_is_left().await;
}

/// The client reads its socket but leaves its streams alone, until their windows are full and a part
/// of a chunk of each is left. A new stream must still get through: what the others have pending
/// does not stop it.
#[tokio::test]
async fn a_stream_gets_through_though_all_others_stand_still() {
    let mut fixture = Fixture::new();
    let mut sender = fixture.connect_h2().await;
    let mut responses = Vec::new();
    for _ in 0..STREAMS - 1 {
        let response = sender.send_request(get("/api/v1/pods?watch=1"));
        responses.push(response.await.expect("a head"));
    }
    fixture.settled().await;
    assert!(fixture.spent() <= bound_of_streams(), "{}", fixture.spent());
    let response = sender.send_request(get("/short")).await;
    assert_eq!(text(response.expect("a response")).await, "short");
    drop((responses, sender));
    fixture.nothing_is_left().await;
}

fn bound_of_streams() -> u64 {
    OUTGOING_BYTES_MAX + STREAMS * CHUNK_BYTES as u64 + BELOW_BYTES + 2 * CONNECTION_BYTES
}

/// An answer that is not read does not keep its place among the requests in flight for ever.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_an_answer_unread_loses_its_connection() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (begun, took) = until_it_ends(protocol, "/api/v1/pods").await;
        let limit = Duration::from_secs(60);
        let took = took.expect("an end");
        assert!(took >= limit && took <= 3 * limit, "{protocol:?}: {took:?}");
        assert!(begun > 0);
    }
    // The watch of an HTTP/1.1 client whose answer is no stream of events is here hyper's.
    let (_, took) = until_it_ends(Protocol::Http1, "/api/v1/pods?watch=1").await;
    assert_eq!(took, None, "watches may be left unread until they are over");
}

/// A client may not hide an answer that it leaves unread behind others that it reads.
#[tokio::test(start_paused = true)]
async fn an_answer_left_unread_beside_others_ends_the_connection() {
    const LOOK_PERIOD: Duration = Duration::from_secs(10);
    for path in ["/api/v1/pods", "/whole"] {
        let mut fixture = Fixture::new();
        let io = fixture.connect(Protocol::Http2);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(1_000);
        let (mut sender, connection) = builder.handshake(io).await.expect("HTTP/2");
        fixture.tasks.spawn(async move {
            let _ = connection.await;
        });
        let unread = sender.send_request(get(path)).await.expect("a head");
        let mut answered = 0;
        while let Ok(response) = sender.send_request(get("/short")).await {
            assert_eq!(text(response).await, "short");
            answered += 1;
            assert!(
                answered < 19,
                "{path}: after three minutes it is still there"
            );
            tokio::time::sleep(LOOK_PERIOD).await;
        }
        assert!(answered >= 6, "{path}: it has the time of a request");
        drop(unread);
    }
}

/// Runs a client that asks for something and then does not read. Returns how much was handed over, and how long it took
/// until the server ended the connection, within ten minutes.
async fn until_it_ends(protocol: Protocol, path: &str) -> (u64, Option<Duration>) {
    let mut fixture = Fixture::new();
    let io = fixture.connect(protocol);
    let clock = Clock::real();
    let begun = clock.now();
    let handed_over;
    let held: Box<dyn std::any::Any> = if protocol == Protocol::Http1 {
        let (mut sender, connection) = http1::handshake(io).await.expect("HTTP/1.1");
        let mut connection = Box::pin(connection);
        let mut response = Box::pin(sender.send_request(get(path)));
        let head = driven(&mut connection, &mut response).await;
        handed_over = fixture.settled().await;
        drop(response);
        Box::new((head, connection, sender))
    } else {
        let handshake = http2::Builder::new(TokioExecutor::new()).handshake(io);
        let (mut sender, connection) = handshake.await.expect("HTTP/2");
        let mut connection = Box::pin(connection);
        let mut response = Box::pin(sender.send_request(get(path)));
        let head = driven(&mut connection, &mut response).await;
        handed_over = fixture.settled().await;
        drop(response);
        Box::new((head, connection, sender))
    };
    let ended = fixture.tasks.join_next();
    let ended = tokio::time::timeout(Duration::from_secs(600), ended).await;
    drop(held);
    (handed_over, ended.is_ok().then(|| clock.now() - begun))
}

#[tokio::test]
async fn a_stream_that_is_reset_does_not_wait_any_more() {
    let outgoing = Outgoing::new(&Ledger::unlimited());
    let mut bodies = Vec::new();
    let mut held = Vec::new();
    for _ in 0..100 {
        let chunks = futures::stream::repeat_with(|| {
            Ok(Frame::data(Bytes::from_static(&[b'x'; CHUNK_BYTES])))
        });
        let body = StreamBody::new(chunks).boxed_unsync();
        let mut body = outgoing.begin().count(body.into());
        // A task of its own, as a stream has.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            while let Poll::Ready(Some(Ok(frame))) = futures::poll!(body.frame()) {
                taken.push(frame);
            }
            (taken, body)
        });
        let (taken, body) = tasks.join_next().await.expect("a task").expect("no panic");
        held.push(taken);
        bodies.push(body);
    }
    assert_eq!(outgoing.lock().waiting.len(), 100);
    bodies.truncate(10);
    assert_eq!(outgoing.lock().waiting.len(), 10);
    drop((bodies, held));
    assert!(outgoing.lock().waiting.is_empty());
    assert_eq!(outgoing.pending(), 0);
}

#[tokio::test]
async fn a_body_waits_for_room_and_goes_on_when_there_is() {
    let ledger = Ledger::new(1 << 30);
    let outgoing = Outgoing::new(&ledger);
    let body = || {
        let chunks = futures::stream::repeat_with(|| {
            Ok(Frame::data(Bytes::from_static(&[b'x'; CHUNK_BYTES])))
        });
        outgoing
            .begin()
            .count(StreamBody::new(chunks).boxed_unsync().into())
    };
    let mut first = body();
    let mut held = Vec::new();
    while let Poll::Ready(frame) = futures::poll!(first.frame()) {
        held.push(frame.expect("a frame").expect("no error"));
    }
    assert_eq!(outgoing.pending(), OUTGOING_BYTES_MAX);
    assert_eq!(held.len() * CHUNK_BYTES, 1 << 20);
    let mut second = body();
    let one = futures::poll!(second.frame());
    assert!(one.is_ready(), "nothing of it is pending");
    assert!(futures::poll!(second.frame()).is_pending());
    let mut waiting = std::pin::pin!(first.frame());
    assert!(futures::poll!(&mut waiting).is_pending());
    held.truncate(held.len() - 2);
    drop(one);
    assert!(futures::poll!(&mut waiting).is_ready());
    drop(held);
    assert_eq!(outgoing.pending(), 0);
    assert_eq!(ledger.total(), CONNECTION_BYTES);
    drop((first, second, outgoing));
    assert_eq!(ledger.total(), 0);
}
