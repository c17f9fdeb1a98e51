//! Watches over HTTP/2 that share a connection, and a client that only counts the DATA frames which it gets.

use bytes::Bytes;
use ringwatch_http::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use super::serving::{Serving, TOKEN, pod};

/// The name of the row.
pub const NAME: &str = "an event to streams";
/// The number of streams.
pub const SIZE: usize = 50;
/// The number of events that are counted, of which the one with the fewest instructions is compared.
pub const EVENTS: usize = 5;
/// The most instructions that an event to one more stream may take in an unoptimised build: 5,169 and some room.
pub const INSTRUCTIONS_MAX: u64 = 5_435;

const PATH: &str = "/api/v1/pods?watch=1&resourceVersion=0";
/// The size of an event, about.
const EVENT_BYTES: usize = 1_000;
/// The bytes that either side may write before the other reads.
const PIPE_BYTES: usize = 1 << 20;
/// The windows of a stream and of the connection, larger than all events.
const WINDOW_BYTES: u32 = 1 << 30;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
/// END_STREAM and END_HEADERS.
const WHOLE_REQUEST: u8 = 5;
/// The setting of the window with which a stream begins.
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// A connection whose streams have been sent the pod as it was when they began.
pub struct Streams {
    io: DuplexStream,
    count: usize,
    server: JoinHandle<()>,
}

impl Streams {
    /// Opens so many watches of all pods, of which there is one.
    pub async fn open(serving: &Serving, count: usize) -> Self {
        serving.put(&[changed_pod()]).await;
        let (io, server) = tokio::io::duplex(PIPE_BYTES);
        let server = tokio::spawn(serving.server.serve_http(server, Protocol::Http2));
        let mut streams = Self { io, count, server };
        let window = [&INITIAL_WINDOW_SIZE[..], &WINDOW_BYTES.to_be_bytes()].concat();
        let mut first = PREFACE.to_vec();
        first.extend(frame(SETTINGS, 0, 0, &window));
        first.extend(frame(WINDOW_UPDATE, 0, 0, &WINDOW_BYTES.to_be_bytes()));
        for stream in (1..).step_by(2).take(count) {
            first.extend(frame(HEADERS, WHOLE_REQUEST, stream, &request()));
        }
        streams.io.write_all(&first).await.unwrap();
        streams.events_came().await;
        streams
    }

    /// Changes the pod and waits until each stream has got the event.
    pub async fn get_event(&mut self, serving: &Serving) {
        serving.put(&[changed_pod()]).await;
        self.events_came().await;
    }

    /// Waits until as many events have come as there are streams.
    async fn events_came(&mut self) {
        let mut events = 0;
        while events < self.count {
            let mut head = [0; FRAME_HEAD_BYTES];
            self.io.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            self.io
                .read_exact(&mut vec![0; length as usize])
                .await
                .unwrap();
            events += usize::from(head[3] == DATA && length > 0);
        }
        assert_eq!(events, self.count, "an event each");
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn changed_pod() -> (String, Bytes) {
    pod(0, EVENT_BYTES)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let head = [
        &length.to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
    ];
    [&head.concat(), payload].concat()
}

/// Encodes the head of the request: `:method GET` and `:scheme http` by their index, the others as text.
fn request() -> Vec<u8> {
    let token = format!("Bearer {TOKEN}");
    let texts = [(&[4][..], PATH), (&[1], "bench"), (&[0x0f, 0x08], &token)];
    let text = |(name, value): (&[u8], &str)| {
        let length = u8::try_from(value.len()).unwrap();
        [name, &[length], value.as_bytes()].concat()
    };
    [vec![0x82, 0x86], texts.map(text).concat()].concat()
}
