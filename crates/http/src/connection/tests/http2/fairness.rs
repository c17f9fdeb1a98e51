//! Tests of the way in which the watches of a connection and its other requests share a socket that takes less than
//! there is to send.

use super::frames::{DATA, Frames, GOAWAY, HEADERS, PING, WINDOW_UPDATE};
use super::watches::{HUGE_CHUNKS, HUGE_PATH, LARGE, WATCH, fed};
use super::*;

/// At most so many bytes of one request come before something of another that is ready.
const AHEAD_BYTES_MAX: usize = 4 << 20;

/// Reads until a frame of this kind and stream comes. Returns how many bytes of the other frames came before.
async fn bytes_before(frames: &mut Frames, kind: u8, stream: u32) -> usize {
    let mut before = 0;
    loop {
        // The server fills the pipe again, so that there is never much room.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let frame = frames.read().await.expect("a frame");
        if (frame.kind, frame.stream) == (kind, stream) {
            return before;
        }
        before += frame.payload.len();
        assert!(
            before < HUGE_CHUNKS * 16_000,
            "all of the other came before"
        );
    }
}

/// Returns a connection with a watch on stream 1 that has more to send than the socket takes.
async fn busy() -> (Frames, watches::Feed) {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    frames.get(1, WATCH).await;
    let event = Bytes::from_static(&[b'x'; 16_000]);
    for _ in 0..HUGE_CHUNKS {
        feed.send(event.clone());
    }
    frames.data(1, 16_000).await;
    (frames, feed)
}

#[tokio::test]
async fn a_busy_watch_does_not_hold_back_an_answer() {
    let (mut frames, _feed) = busy().await;
    frames.request(3, "/whoami").await;
    let before = bytes_before(&mut frames, HEADERS, 3).await;
    assert!(before < AHEAD_BYTES_MAX, "{before} bytes came before");
}

#[tokio::test]
async fn a_busy_watch_does_not_hold_back_the_answer_to_a_ping() {
    let (mut frames, _feed) = busy().await;
    frames.send(PING, 0, 0, b"01234567").await;
    let before = bytes_before(&mut frames, PING, 0).await;
    assert!(before < AHEAD_BYTES_MAX, "{before} bytes came before");
}

#[tokio::test]
async fn a_busy_watch_does_not_keep_a_connection_from_its_end() {
    let (mut frames, _feed) = busy().await;
    // An error of the client.
    frames.send(WINDOW_UPDATE, 0, 0, &[0; 4]).await;
    let before = bytes_before(&mut frames, GOAWAY, 0).await;
    assert!(before < AHEAD_BYTES_MAX, "{before} bytes came before");
    let mut behind = 0;
    while let Some(frame) = frames.read().await {
        behind += frame.payload.len();
    }
    assert!(behind < AHEAD_BYTES_MAX, "{behind} bytes came behind");
}

#[tokio::test]
async fn a_large_answer_does_not_hold_back_a_watch() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    frames.get(1, WATCH).await;
    frames.get(3, HUGE_PATH).await;
    frames.data(3, 16_000).await;
    feed.send("event");
    let before = bytes_before(&mut frames, DATA, 1).await;
    assert!(before < AHEAD_BYTES_MAX, "{before} bytes came before");
}
