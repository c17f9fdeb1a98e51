//! Over an in-memory connection, whose other end reads when the test says so.

use std::future::poll_fn;

use bytes::Bytes;
use futures::channel::mpsc;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, BufStream, DuplexStream};

use super::*;
use crate::body::ResponseBody;
use crate::layered_io::LayeredIo;

/// A client is not waited for longer.
const SECONDS_MAX: u64 = 30;

type Chunks = mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>;

fn answer() -> (Chunks, Response<ResponseBody>) {
    let (sender, receiver) = mpsc::unbounded();
    let body = StreamBody::new(receiver).boxed_unsync();
    let answer = Response::builder().header("content-type", "application/json");
    (sender, answer.body(body).expect("an answer"))
}

async fn deliver(
    io: &mut DuplexStream,
    answer: Response<ResponseBody>,
) -> Result<StreamEnd, BoxError> {
    let clock = Clock::stepped(Timestamp::UNIX_EPOCH);
    let mut delivery = begin(io, answer, &clock).await?;
    poll_fn(|context| delivery.poll(context)).await
}

fn send(chunks: &Chunks, text: &'static str) {
    let frame = Frame::data(Bytes::from_static(text.as_bytes()));
    chunks.unbounded_send(Ok(frame)).expect("listened to");
}

async fn read(client: &mut DuplexStream, until: &str) -> String {
    let mut text = Vec::new();
    let at_most = Duration::from_secs(SECONDS_MAX);
    let reading = async {
        while !text.ends_with(until.as_bytes()) {
            text.push(client.read_u8().await.expect("a byte"));
        }
    };
    tokio::time::timeout(at_most, reading)
        .await
        .expect("in time");
    String::from_utf8(text).expect("text")
}

#[tokio::test]
async fn chunks_go_out_as_they_come_and_the_end_is_marked() {
    let (mut client, mut server) = tokio::io::duplex(64);
    let (chunks, answer) = answer();
    let delivered = deliver(&mut server, answer);
    let following = async {
        let head = read(&mut client, "\r\n\r\n").await;
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\
             date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
        );
        send(&chunks, "one\n");
        assert_eq!(read(&mut client, "\n\r\n").await, "4\r\none\n\r\n");
        // An empty chunk would be taken for the end.
        send(&chunks, "");
        send(
            &chunks,
            "the second is longer than the buffer of the connection: it comes in parts\n",
        );
        let second = read(&mut client, "parts\n\r\n").await;
        assert!(second.starts_with("4a\r\nthe second"), "{second}");
        drop(chunks);
        assert_eq!(read(&mut client, "\r\n\r\n").await, "0\r\n\r\n");
    };
    let (ended, ()) = tokio::join!(delivered, following);
    assert_eq!(ended.expect("no error"), StreamEnd::Whole);
}

#[tokio::test]
async fn a_client_that_goes_ends_the_watch() {
    let (client, mut server) = tokio::io::duplex(1024);
    let (_chunks, answer) = answer();
    drop(client);
    let ended = deliver(&mut server, answer).await;
    // The head may or may not be taken by a closed connection.
    assert_eq!(ended.unwrap_or(StreamEnd::Gone), StreamEnd::Gone);
}

#[tokio::test]
async fn a_client_that_talks_out_of_turn_is_answered_to_the_end_and_left() {
    let (mut client, mut server) = tokio::io::duplex(1024);
    let (chunks, answer) = answer();
    let delivered = deliver(&mut server, answer);
    let following = async {
        client.write_all(b"GET / HTTP/1.1\r\n").await.expect("sent");
        read(&mut client, "\r\n\r\n").await;
        send(&chunks, "one\n");
        assert_eq!(read(&mut client, "\n\r\n").await, "4\r\none\n\r\n");
        drop(chunks);
        assert_eq!(read(&mut client, "\r\n\r\n").await, "0\r\n\r\n");
    };
    let (ended, ()) = tokio::join!(delivered, following);
    assert_eq!(ended.expect("no error"), StreamEnd::Gone);
}

#[tokio::test]
async fn a_body_that_fails_is_not_given_an_end() {
    let (mut client, mut server) = tokio::io::duplex(1024);
    let (chunks, answer) = answer();
    chunks
        .unbounded_send(Err("broken".into()))
        .expect("listened to");
    let error = deliver(&mut server, answer).await;
    assert_eq!(error.expect_err("broken").to_string(), "broken");
    drop(server);
    let mut text = String::new();
    client.read_to_string(&mut text).await.expect("text");
    assert!(
        text.ends_with("\r\n\r\n") && !text.ends_with("0\r\n\r\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_left_when_its_watch_is_over() {
    let (mut client, mut server) = tokio::io::duplex(256);
    let (chunks, mut answer) = answer();
    let begun = Clock::real().now();
    let deadline = begun + Duration::from_secs(100);
    answer.extensions_mut().insert(EventStream {
        deadline,
        shared: None,
    });
    let delivered = deliver(&mut server, answer);
    let following = async {
        read(&mut client, "\r\n\r\n").await;
        // It reads late, which is no harm, and then no more.
        for chunk in ["one\n", "two\n"] {
            for _ in 0..100 {
                send(&chunks, chunk);
            }
            tokio::time::advance(Duration::from_secs(40)).await;
            for _ in 0..100 {
                read(&mut client, "\n\r\n").await;
            }
        }
        for _ in 0..100 {
            send(&chunks, "three\n");
        }
    };
    let (ended, ()) = tokio::join!(delivered, following);
    let error = ended.expect_err("not read").downcast::<io::Error>();
    assert_eq!(
        error.expect("of the connection").kind(),
        io::ErrorKind::TimedOut
    );
    let ended = Clock::real().now();
    assert!(ended >= deadline && ended <= deadline + Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_the_head_is_left() {
    let (_client, mut server) = tokio::io::duplex(16);
    let (_chunks, answer) = answer();
    let begun = Clock::real().now();
    let at_most = Duration::from_secs(1_000);
    let ended = tokio::time::timeout(at_most, deliver(&mut server, answer)).await;
    let error = ended.expect("an end").expect_err("not read");
    let error = error.downcast::<io::Error>().expect("of the connection");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(Clock::real().now() - begun, READING_MAX);
}

/// TLS takes what the socket does not: then everything is written, the end of the body too, and only
/// the flush waits for the client.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_the_end_is_left_as_well() {
    let (client, server) = tokio::io::duplex(16);
    let mut server = BufStream::with_capacity(1, 64 << 10, server);
    let (chunks, mut answer) = answer();
    let deadline = Clock::real().now() + Duration::from_secs(100);
    answer.extensions_mut().insert(EventStream {
        deadline,
        shared: None,
    });
    send(&chunks, "an event that the connection does not take\n");
    drop(chunks);
    let clock = Clock::stepped(Timestamp::UNIX_EPOCH);
    // The client reads the head and no more.
    let head = async {
        let mut client = client;
        read(&mut client, "\r\n\r\n").await;
        client
    };
    let (delivery, _client) = tokio::join!(begin(&mut server, answer, &clock), head);
    let mut delivery = delivery.expect("begun");
    let ended = poll_fn(|context| delivery.poll(context));
    let at_most = Duration::from_secs(1_000);
    let ended = tokio::time::timeout(at_most, ended).await.expect("an end");
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test]
async fn writes_that_wait_are_noticed() {
    let (mut client, server) = tokio::io::duplex(4);
    let waiting = WriteBacklog::default();
    let mut io = LayeredIo::new(server, waiting.clone());
    io.write_all(b"four").await.expect("room");
    assert!(!waiting.is_waiting());
    let mut more = Box::pin(io.write_all(b"more"));
    assert!(futures::poll!(more.as_mut()).is_pending());
    assert!(waiting.is_waiting());
    let mut read = [0; 4];
    client.read_exact(&mut read).await.expect("four bytes");
    more.await.expect("room again");
    assert!(!waiting.is_waiting());
}
