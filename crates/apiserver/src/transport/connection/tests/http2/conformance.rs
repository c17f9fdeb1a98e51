//! The cases of h2spec about streams and flow control (RFC 9113, sections 5.1, 6.5.2, 6.9), on a connection with a watch that
//! is written beside h2.

use super::frames::{
    DATA, Frames, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WHOLE_REQUEST, WINDOW_UPDATE, block,
    encode,
};
use super::watches::{Feed, LARGE, ONE_EVENT_PATH, WATCH, fed};

const CONTINUATION: u8 = 9;
const PRIORITY: u8 = 2;
const UNKNOWN: u8 = 0x16;
const END_HEADERS: u8 = 4;

const PROTOCOL: u8 = 1;
const FLOW_CONTROL: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE: u8 = 6;
const REFUSED: u8 = 7;
/// No code of HTTP/2: the connection has ended.
const CLOSED: u8 = 255;

/// Opens a connection with a watch on stream 1 that has gone over.
async fn watching() -> (Frames, Feed) {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, 65_535, LARGE).await;
    frames.get(1, WATCH).await;
    feed.send("event");
    assert_eq!(frames.data(1, 5).await, b"event");
    (frames, feed)
}

/// Waits until the server has handled all that was sent: the first answer may come before what it has to say about that,
/// the second does not. Returns false if the connection ends.
async fn handled(frames: &mut Frames, codes: &mut Vec<u8>) -> bool {
    for _ in 0..2 {
        frames.write(&encode(PING, 0, 0, &[0; 8])).await;
        loop {
            let Some(frame) = frames.read().await else {
                return false;
            };
            match frame.kind {
                RST_STREAM => codes.push(frame.payload[3]),
                GOAWAY => codes.push(frame.payload[7]),
                PING => break,
                _ => {}
            }
        }
    }
    true
}

/// Returns the codes with which the server ends streams or the connection after these bytes, which come after others.
async fn codes_after(bytes: &[u8], before: &[u8]) -> Vec<u8> {
    let (mut frames, _feed) = watching().await;
    frames.write(before).await;
    assert!(handled(&mut frames, &mut Vec::new()).await, "before");
    frames.write(bytes).await;
    let mut codes = Vec::new();
    if !handled(&mut frames, &mut codes).await {
        codes.push(CLOSED);
    }
    codes
}

/// A case: its name, what comes before, what is sent, and the codes of which one is to be seen; none if all goes on.
type Case = (&'static str, Vec<u8>, Vec<u8>, &'static [u8]);

fn reset(stream: u32) -> Vec<u8> {
    encode(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

fn request(stream: u32) -> Vec<u8> {
    encode(HEADERS, WHOLE_REQUEST, stream, &block("/whoami"))
}

fn too_many() -> Vec<u8> {
    let streams = (1..=110).map(|it| 2 * it + 1);
    let requests = streams.map(|it| encode(HEADERS, WHOLE_REQUEST, it, &block(ONE_EVENT_PATH)));
    requests.flatten().collect()
}

fn setting(id: u8, value: u32) -> Vec<u8> {
    let payload = [&[0, id][..], &value.to_be_bytes()].concat();
    encode(SETTINGS, 0, 0, &payload)
}

fn grant(stream: u32, bytes: u32) -> Vec<u8> {
    encode(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

// PROTOCOL_ERROR is accepted beside a code that is more exact, since h2 answers with it.
#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let none = Vec::new;
    let data = |stream| encode(DATA, 1, stream, b"test");
    let more = |stream| encode(CONTINUATION, END_HEADERS, stream, &block("/whoami"));
    vec![
        ("5.1 idle: DATA", none(), data(3), &[PROTOCOL]),
        ("5.1 idle: RST_STREAM", none(), reset(3), &[PROTOCOL]),
        ("5.1 idle: WINDOW_UPDATE", none(), grant(3, 100), &[PROTOCOL]),
        ("5.1 idle: CONTINUATION", none(), more(3), &[PROTOCOL]),
        ("5.1 half closed: DATA", none(), data(1), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 half closed: HEADERS", none(), request(1), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 half closed: CONTINUATION", none(), more(1), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 closed by RST_STREAM: DATA", reset(1), data(1), &[STREAM_CLOSED]),
        ("5.1 closed by RST_STREAM: HEADERS", reset(1), request(1), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 closed by RST_STREAM: CONTINUATION", reset(1), more(1), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 closed by RST_STREAM: WINDOW_UPDATE", reset(1), grant(1, 5), &[]),
        ("5.1 closed by RST_STREAM: RST_STREAM", reset(1), reset(1), &[]),
        ("5.1 closed: DATA", request(3), data(3), &[STREAM_CLOSED]),
        ("5.1 closed: HEADERS", request(3), request(3), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 closed: CONTINUATION", request(3), more(3), &[STREAM_CLOSED, PROTOCOL]),
        ("5.1 closed: WINDOW_UPDATE", request(3), grant(3, 5), &[]),
        ("5.1.1 even stream", none(), request(2), &[PROTOCOL]),
        ("5.1.1 lower stream", request(5), request(3), &[PROTOCOL]),
        ("5.1.2 too many streams", none(), too_many(), &[REFUSED, PROTOCOL]),
        ("5.3.1 depends on itself", none(), encode(PRIORITY, 0, 1, &[0, 0, 0, 1, 0]), &[PROTOCOL]),
        ("5.5 unknown frame", none(), encode(UNKNOWN, 0xff, 1, b"anything"), &[]),
        ("5.5 unknown frame within a block", none(), [
            encode(HEADERS, 1, 3, &block("/whoami")), encode(UNKNOWN, 0, 0, b"x"),
        ].concat(), &[PROTOCOL]),
        ("6.2 a watch's WINDOW_UPDATE within a block", none(), [
            encode(HEADERS, 1, 3, &block("/whoami")), grant(1, 5), more(3),
        ].concat(), &[PROTOCOL]),
        ("6.4 RST_STREAM of stream 0", none(), reset(0), &[PROTOCOL]),
        ("6.4 RST_STREAM of a wrong length", none(), encode(RST_STREAM, 0, 1, &[0; 3]), &[FRAME_SIZE, PROTOCOL]),
        ("6.5 SETTINGS of a stream", none(), encode(SETTINGS, 0, 1, &[0, 3, 0, 0, 0, 100]), &[PROTOCOL]),
        ("6.5 SETTINGS of a wrong length", none(), encode(SETTINGS, 0, 0, &[0, 3, 0]), &[FRAME_SIZE, PROTOCOL]),
        ("6.5.2 ENABLE_PUSH", none(), setting(2, 2), &[PROTOCOL]),
        ("6.5.2 INITIAL_WINDOW_SIZE", none(), setting(4, 1 << 31), &[FLOW_CONTROL, PROTOCOL]),
        ("6.5.2 MAX_FRAME_SIZE below", none(), setting(5, 16_383), &[PROTOCOL]),
        ("6.5.2 MAX_FRAME_SIZE above", none(), setting(5, 1 << 24), &[PROTOCOL]),
        ("6.5.2 unknown setting", none(), setting(0xff, 1), &[]),
        ("6.9 no increment", none(), grant(0, 0), &[PROTOCOL]),
        ("6.9 no increment of a watch", none(), grant(1, 0), &[PROTOCOL]),
        ("6.9 wrong length", none(), encode(WINDOW_UPDATE, 0, 1, &[0, 0, 1]), &[FRAME_SIZE, PROTOCOL]),
        ("6.9.1 too large a window", none(), [grant(0, i32::MAX as u32), grant(0, i32::MAX as u32)].concat(), &[FLOW_CONTROL]),
        ("6.9.1 too large a window of a watch", none(), [grant(1, i32::MAX as u32), grant(1, i32::MAX as u32)].concat(), &[FLOW_CONTROL]),
    ]
}

#[tokio::test]
async fn errors_are_answered_as_the_standard_says() {
    let mut wrong = Vec::new();
    for (name, before, bytes, expected) in cases() {
        let found = codes_after(&bytes, &before).await;
        let fits = match expected {
            [] => found.is_empty(),
            codes => found.iter().any(|code| codes.contains(code)),
        };
        if !fits {
            wrong.push(format!("{name}: expected {expected:?}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sections 6.9.1 and 6.9.2: a window of one byte, and one that becomes negative.
#[tokio::test]
async fn a_window_that_is_negative_has_to_become_positive_again() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, 1, LARGE).await;
    frames.get(1, WATCH).await;
    feed.send("0123456789");
    assert_eq!(frames.data(1, 1).await, b"0");
    frames.set_window(5).await;
    assert_eq!(frames.data(1, 4).await, b"1234");
    frames.set_window(2).await;
    // 2 - 5 + 3 bytes: nothing. One more is one byte.
    frames.grant(1, 3).await;
    frames.get(3, "/whoami").await;
    // The answer's window is two bytes.
    assert_eq!(frames.data(3, 2).await, b"an");
    frames.grant(1, 1).await;
    assert_eq!(frames.data(1, 1).await, b"5");
    frames.set_window(100).await;
    let mut rest = Vec::new();
    while rest.len() < 4 {
        let frame = frames.next().await;
        if frame.stream == 1 {
            rest.extend(frame.payload);
        }
    }
    assert_eq!(rest, b"6789");
}

/// A client may make its window large in steps.
#[tokio::test]
async fn a_window_that_is_granted_in_steps_is_all_there() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, 980_000).await;
    frames.grant(0, 10_000).await;
    frames.get(1, WATCH).await;
    feed.send(vec![b'x'; 500_000]);
    frames.data(1, 500_000).await;
}
