//! The cases of h2spec by the sections of RFC 9113, each on a connection with two watches that are written beside h2.
//!
//! After a case that ends no more than a stream, the watches go on: each gets another event. Section 5.4.1 allows a
//! server to take an error of a stream for one of the connection, as h2 does in some cases.

mod exchanges;
mod framing;
mod generic;
mod kinds;
mod streams;

use super::frames::{
    ACK, DATA, Frames, GOAWAY, HEADERS, PING, RST_STREAM, Received, SETTINGS, WHOLE_REQUEST,
    WINDOW_UPDATE, block, encode,
};
use super::watches::{END_STREAM, LARGE, READ_PATH, fed, open};
use super::*;

const PRIORITY: u8 = 2;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
/// A frame's kind that no standard defines.
const UNKNOWN: u8 = 0x16;

const END_HEADERS: u8 = 4;
/// The flag of DATA and HEADERS with padding.
const PADDED: u8 = 8;
/// The flag of HEADERS that say on which stream theirs depends.
const WITH_PRIORITY: u8 = 0x20;

const PROTOCOL: u8 = 1;
const FLOW_CONTROL: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE: u8 = 6;
const REFUSED: u8 = 7;
const COMPRESSION: u8 = 9;

/// The payload of the PING behind a case.
const MARK: &[u8] = b"the mark";
/// The window of a stream at first.
const WINDOW_BYTES: u32 = 65_535;
/// The first stream beside those of the watches, which are 1 and 3.
const OTHER: u32 = 5;
/// Maximum payload of a frame that the server takes.
const FRAME_BYTES_MAX: usize = 16 << 10;

/// The outcome of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    /// GOAWAY with this code, and the end of the connection. h2 has PROTOCOL_ERROR for many errors for which the
    /// standard has a more exact code, so that one is right as well.
    ConnectionError(u8),
    /// RST_STREAM of this stream with this code.
    StreamError(u32, u8),
    /// The answer of this stream to its end.
    Answer(u32),
    /// Nothing that concerns a stream or the connection.
    Nothing,
}
use Expected::{Answer, ConnectionError, Nothing, StreamError};

/// A case: its name, the bytes that are handled before, those that are sent, and the outcome.
type Case = (&'static str, Vec<u8>, Vec<u8>, Expected);

/// The frames by which the server ends streams or the connection, or answers.
#[derive(Debug, Default)]
struct Found {
    /// The codes by which streams were reset.
    resets: Vec<(u32, u8)>,
    /// The streams that have ended by END_STREAM.
    answered: Vec<u32>,
    /// The code of the last GOAWAY.
    goaway: Option<u8>,
    closed: bool,
}

impl Found {
    fn note(&mut self, frame: &Received) {
        match frame.kind {
            RST_STREAM => self.resets.push((frame.stream, frame.payload[3])),
            GOAWAY => self.goaway = Some(frame.payload[7]),
            DATA | HEADERS if frame.flags & END_STREAM != 0 => self.answered.push(frame.stream),
            _ => {}
        }
    }

    /// Reads until the server has handled all that was sent, or closes the connection. The first answer to a PING may
    /// come before what it has to say about the frames before, the second does not.
    async fn read(&mut self, frames: &mut Frames) {
        for _ in 0..2 {
            // The server may have closed the connection.
            let _ = frames.io.write_all(&encode(PING, 0, 0, MARK)).await;
            self.read_until(frames, |_, frame| {
                frame.kind == PING && frame.payload == MARK
            })
            .await;
        }
    }

    /// Reads until a frame is the last one, or the server closes the connection.
    async fn read_until(
        &mut self,
        frames: &mut Frames,
        is_last: impl Fn(&Self, &Received) -> bool,
    ) {
        loop {
            let Some(frame) = frames.read().await else {
                self.closed = true;
                return;
            };
            self.note(&frame);
            if is_last(self, &frame) {
                return;
            }
        }
    }

    fn fits(&self, expected: Expected) -> bool {
        let ends_nothing = self.goaway.is_none() && !self.closed;
        match expected {
            ConnectionError(code) => {
                let is_right = |found| found == code || found == PROTOCOL;
                self.goaway.is_some_and(is_right) && self.closed
            }
            StreamError(stream, code) => ends_nothing && self.resets == [(stream, code)],
            Answer(stream) => {
                ends_nothing && self.resets.is_empty() && self.answered.contains(&stream)
            }
            Nothing => ends_nothing && self.resets.is_empty(),
        }
    }
}

/// Runs a case.
///
/// # Errors
/// A text with what was expected and what came instead.
async fn run((name, before, sent, expected): Case) -> Result<(), String> {
    let (connections, [first, second]) = fed();
    let mut frames = Frames::connect(connections, WINDOW_BYTES, LARGE).await;
    open(&mut frames, 2).await;
    for (stream, feed) in [(1, &first), (3, &second)] {
        feed.send("event");
        assert_eq!(frames.data(stream, 5).await, b"event");
    }
    if !before.is_empty() {
        frames.write(&before).await;
        let mut found = Found::default();
        found.read(&mut frames).await;
        if !found.fits(Nothing) {
            return Err(format!("{name}: {found:?} came too early"));
        }
    }
    let mut found = Found::default();
    // The server may close the connection before all is sent.
    let _ = frames.io.write_all(&sent).await;
    found.read(&mut frames).await;
    if let Answer(stream) = expected
        && found.fits(Nothing)
        && !found.answered.contains(&stream)
    {
        let is_last = |found: &Found, _: &Received| found.answered.contains(&stream);
        found.read_until(&mut frames, is_last).await;
    }
    if !found.fits(expected) {
        return Err(format!("{name}: expected {expected:?}, but {found:?}"));
    }
    if matches!(expected, ConnectionError(_)) {
        return Ok(());
    }
    for (stream, feed) in [(1, first), (3, second)] {
        // The case may be about the end of the first.
        if stream == 3 || !feed.is_closed() {
            feed.send("later");
            if frames.data_among_others(stream, 5).await != b"later" {
                return Err(format!(
                    "{name}: the watch of stream {stream} does not go on"
                ));
            }
        }
    }
    Ok(())
}

/// Runs cases and tells all that fail.
async fn run_all(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases {
        wrong.extend(run(case).await.err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn reset(stream: u32) -> Vec<u8> {
    encode(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

/// Encodes a request without a body.
fn request(stream: u32) -> Vec<u8> {
    encode(HEADERS, WHOLE_REQUEST, stream, &block("/whoami"))
}

/// Encodes the head of a request whose answer needs all of its body.
fn request_with_body(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_HEADERS, stream, &block(READ_PATH))
}

/// Encodes the head of a request whose header block goes on.
fn begun_request(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_STREAM, stream, &block("/whoami"))
}

/// Encodes an empty CONTINUATION, with which a header block ends.
fn end_of_block(stream: u32) -> Vec<u8> {
    encode(CONTINUATION, END_HEADERS, stream, &[])
}

fn last_data(stream: u32) -> Vec<u8> {
    encode(DATA, END_STREAM, stream, b"test")
}

fn grant(stream: u32, bytes: u32) -> Vec<u8> {
    encode(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn setting(id: u8, value: u32) -> Vec<u8> {
    let payload = [&[0, id][..], &value.to_be_bytes()].concat();
    encode(SETTINGS, 0, 0, &payload)
}

/// Encodes header fields, as text that no table keeps.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).expect("a short text");
        [&[length], text.as_bytes()].concat()
    };
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    fields.iter().flat_map(field).collect()
}
