//! The joining of writes, over pipes that count.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;

/// A pipe that counts the writes into it.
#[derive(Debug)]
struct Counting {
    pipe: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.pipe).poll_write(context, data);
        if polled.is_ready() {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(context)
    }
}

/// Returns both ends of a pipe of this capacity, joined at one of them.
fn pipe(capacity: usize) -> (JoinedIo<Counting>, Turns<Counting>, DuplexStream) {
    let (near, far) = tokio::io::duplex(capacity);
    let counting = Counting {
        pipe: near,
        writes: Arc::default(),
    };
    let (io, turns) = join(counting, None);
    (io, turns, far)
}

fn writes(turns: &Turns<Counting>) -> usize {
    lock(&turns.shared).inner.writes.load(Ordering::Relaxed)
}

/// Returns how much memory is held.
fn held(turns: &Turns<Counting>) -> usize {
    lock(&turns.shared).gathered.capacity()
}

#[tokio::test]
async fn a_connection_gives_way_before_each_turn() {
    let (_io, mut turns, _far) = pipe(1);
    let polled = AtomicUsize::new(0);
    let connection = pin!(poll_fn(|context| {
        polled.fetch_add(1, Ordering::Relaxed);
        context.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    let mut driven = pin!(turns.drive(connection));
    for turn in 0..3 {
        assert!(futures::poll!(driven.as_mut()).is_pending());
        assert_eq!(polled.load(Ordering::Relaxed), turn);
        assert!(futures::poll!(driven.as_mut()).is_pending());
        assert_eq!(polled.load(Ordering::Relaxed), turn + 1);
    }
}

#[tokio::test]
async fn a_flush_comes_without_anything_else_happening() {
    let (mut io, mut turns, mut far) = pipe(1 << 20);
    let connection = pin!(async {
        for number in 0..100_u8 {
            io.write_all(&[number; 10]).await.expect("written");
            io.flush().await.expect("wished");
        }
        std::future::pending::<()>().await;
    });
    let mut found = [0; 1_000];
    tokio::select! {
        ended = turns.drive(connection) => panic!("{ended:?}"),
        read = far.read_exact(&mut found) => assert_eq!(read.expect("all of it"), 1_000),
    }
    assert_eq!(found[990..], [99; 10]);
    assert_eq!(writes(&turns), 1);
    assert_eq!(held(&turns), 0, "an idle connection holds no buffer");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_waited_for() {
    const PIPE_BYTES: usize = 100;
    let (mut io, mut turns, mut far) = pipe(PIPE_BYTES);
    let sent: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    let taken = AtomicUsize::new(0);
    let mut connection = pin!(async {
        for part in sent.chunks(1_000) {
            io.write_all(part).await.expect("written");
            taken.fetch_add(part.len(), Ordering::Relaxed);
        }
        io.shutdown().await.expect("an end");
    });
    // Far more turns than it needs to fill what there is.
    let still = async {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = turns.drive(connection.as_mut()) => panic!("{ended:?}"),
        () = still => {}
    }
    let there_is_room_for = JOINED_BYTES_MAX + PIPE_BYTES;
    let before = taken.load(Ordering::Relaxed);
    assert!(before <= there_is_room_for, "{before} bytes");
    assert!(before + 1_000 >= JOINED_BYTES_MAX, "{before} bytes");
    let mut found = Vec::new();
    let (ended, read) = tokio::join!(turns.drive(connection), far.read_to_end(&mut found));
    ended.expect("an end");
    read.expect("all of it");
    assert_eq!(found, sent);
}

#[tokio::test]
async fn an_end_in_order_waits_until_all_is_out() {
    let (mut io, mut turns, mut far) = pipe(10);
    let connection = pin!(async {
        io.write_all(&[7; 1_000]).await.expect("written");
        io.shutdown().await.expect("an end");
    });
    let mut found = Vec::new();
    let (ended, read) = tokio::join!(turns.drive(connection), far.read_to_end(&mut found));
    ended.expect("an end");
    read.expect("all of it");
    assert_eq!(found, [7; 1_000]);
}

#[tokio::test]
async fn a_connection_that_just_ends_is_flushed() {
    let (mut io, mut turns, mut far) = pipe(1_000);
    let connection = pin!(async {
        io.write_all(b"the last words").await.expect("written");
        "why it ended"
    });
    let ended = turns.drive(connection).await;
    assert_eq!(ended.expect("no error"), "why it ended");
    let mut found = [0; 14];
    far.read_exact(&mut found).await.expect("flushed");
    assert_eq!(&found, b"the last words");
}

#[tokio::test]
async fn a_failed_flush_ends_the_connection() {
    let (mut io, mut turns, far) = pipe(1_000);
    drop(far);
    let connection = pin!(async {
        io.write_all(b"to nobody").await.expect("gathered");
        std::future::pending::<()>().await;
    });
    let error = turns.drive(connection).await.expect_err("nobody is there");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn parts_are_taken_together_and_fill_whole_records() {
    let (mut io, mut turns, mut far) = pipe(1 << 20);
    let large = vec![2; JOINED_BYTES_MAX];
    let connection = pin!(async {
        let parts = [IoSlice::new(&[1; 9]), IoSlice::new(&large)];
        let taken = io.write_vectored(&parts).await.expect("written");
        assert_eq!(taken, JOINED_BYTES_MAX, "as many as fit");
        io.write_all(&large[taken - 9..]).await.expect("written");
    });
    turns.drive(connection).await.expect("an end");
    assert_eq!(writes(&turns), 2);
    drop((turns, io));
    let mut found = Vec::new();
    far.read_to_end(&mut found).await.expect("all of it");
    assert_eq!(found.len(), 9 + JOINED_BYTES_MAX);
    assert_eq!(found[..9], [1; 9]);
    assert_eq!(found[9..], large[..]);
}

/// Streams of one connection that all send when the number changes.
const STREAMS: usize = 50;

/// With one thread that runs next what was woken last, as the server's threads do.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_frames_of_all_streams_of_a_connection_leave_together() {
    let mut tasks = JoinSet::new();
    tasks.spawn(frames_of_all_streams());
    tasks.join_next().await.expect("a task").expect("no panic");
}

async fn frames_of_all_streams() {
    let (io, mut turns, far) = pipe(1 << 20);
    let (events, event) = watch::channel(0_u8);
    let service = service_fn(move |_: Request<hyper::body::Incoming>| {
        let mut event = event.clone();
        async move {
            event.mark_unchanged();
            let numbers = futures::stream::unfold(event, |mut event| async move {
                event.changed().await.ok()?;
                let data = Bytes::from(vec![*event.borrow(); 300]);
                Some((Ok::<_, Infallible>(Frame::data(data)), event))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(numbers))))
        }
    });
    let counted = Arc::clone(&lock(&turns.shared).inner.writes);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let connection =
            server::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(io), service);
        let ended = turns.drive(pin!(connection)).await;
        ended.expect("no error").unwrap_or_default();
    });
    let (mut sender, connection) = client::handshake(TokioExecutor::new(), TokioIo::new(far))
        .await
        .expect("a connection");
    tasks.spawn(async move { connection.await.unwrap_or_default() });
    let mut bodies = Vec::new();
    for _ in 0..STREAMS {
        let request = Request::get("http://localhost/").body(Empty::<Bytes>::new());
        let response = sender.send_request(request.expect("a request")).await;
        bodies.push(response.expect("a response").into_body());
    }
    for round in 1..=3 {
        let before = counted.load(Ordering::Relaxed);
        events.send(round).expect("followers");
        for body in &mut bodies {
            let frame = body.frame().await.expect("a frame").expect("no error");
            assert_eq!(frame.into_data().expect("data"), vec![round; 300]);
        }
        let needed = counted.load(Ordering::Relaxed) - before;
        let bytes = STREAMS * 309;
        assert!(
            needed <= bytes.div_ceil(JOINED_BYTES_MAX) + 2,
            "{needed} writes"
        );
    }
}
