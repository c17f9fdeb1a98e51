//! Clients that cause work without end: PING, SETTINGS, and streams that are reset as soon as they are open.

use super::frames::{
    ACK, DATA, Frames, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WHOLE_REQUEST, block, encode,
};
use super::watches::{Feed, LARGE, ONE_EVENT_PATH, WATCH, fed};
use super::*;

/// The number of frames of a flood.
const FRAMES: usize = 100_000;
/// The number of watches that are opened and reset on one connection.
const RESETS: u32 = 10_000;
/// The number of these watches, from the first on, whose memory is not counted: buffers and tables grow to their size
/// meanwhile.
const WARM_UP: u32 = 1_000;
/// Maximum memory that a flood may leave behind, in bytes.
const HELD_MAX: usize = 4 << 20;

/// Returns the memory of this process, which runs this test alone, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// Sends a flood without reading until the server takes no more of it. Then reads, until all is answered.
async fn flood(frame: &[u8], answer: u8) -> (Frames, Feed) {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    frames.get(1, WATCH).await;
    let all = frame.repeat(FRAMES);
    let before = resident();
    let mut sent = 0;
    while sent < all.len() {
        let writing = frames.io.write(&all[sent..]);
        match tokio::time::timeout(Duration::from_millis(300), writing).await {
            Ok(written) => sent += written.expect("a server"),
            Err(_) => break,
        }
    }
    assert!(sent < all.len() / 2, "{sent} bytes are taken unanswered");
    let held = resident().saturating_sub(before);
    assert!(held < HELD_MAX, "{held} bytes");
    let (mut reads, mut writes) = tokio::io::split(&mut frames.io);
    let writing = async { writes.write_all(&all[sent..]).await.expect("a server") };
    let reading = async {
        let mut answers = 0;
        while answers < FRAMES {
            let mut head = [0; 9];
            reads.read_exact(&mut head).await.expect("a frame");
            let mut payload = vec![0; usize::from(head[2])];
            reads.read_exact(&mut payload).await.expect("a payload");
            assert!(head[3] == answer || head[3] == 8, "{head:?}");
            answers += usize::from(head[3] == answer && head[4] == ACK);
        }
    };
    let at_most = Duration::from_secs(2 * SECONDS_MAX);
    let both = futures::future::join(writing, reading);
    tokio::time::timeout(at_most, both).await.expect("in time");
    (frames, feed)
}

#[tokio::test]
async fn a_flood_of_pings_holds_no_memory_and_watches_go_on() {
    let (mut frames, feed) = flood(&encode(PING, 0, 0, b"01234567"), PING).await;
    feed.send("event");
    assert_eq!(frames.data(1, 5).await, b"event");
}

#[tokio::test]
async fn a_flood_of_settings_holds_no_memory_and_watches_go_on() {
    let setting = [0, 4, 0, 1, 0, 0];
    let (mut frames, feed) = flood(&encode(SETTINGS, 0, 0, &setting), SETTINGS).await;
    feed.send("event");
    assert_eq!(frames.data(1, 5).await, b"event");
}

/// Opens and resets watches whose head the client reads. Asserts that no memory is held for them.
async fn reset_each(frames: &mut Frames) {
    let mut before = 0;
    for watch in 1..RESETS {
        let stream = 2 * watch + 1;
        frames.request(stream, ONE_EVENT_PATH).await;
        loop {
            let head = frames.next().await;
            if head.kind == HEADERS {
                break;
            }
            // The event of the one before.
            assert_eq!(head.kind, DATA, "{head:?}");
        }
        // Lets the watch go over and ask for a window.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        frames.reset(stream).await;
        if watch == WARM_UP {
            before = resident();
        }
    }
    let held = resident().saturating_sub(before);
    assert!(held < HELD_MAX, "{held} bytes");
}

#[tokio::test]
async fn watches_that_are_reset_hold_no_memory() {
    let (connections, []) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    reset_each(&mut frames).await;
}

#[tokio::test]
async fn watches_that_are_reset_while_the_connection_has_no_window_hold_no_memory() {
    const MORE: u32 = 1 << 20;
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, MORE).await;
    frames.get(1, WATCH).await;
    let granted = MORE as usize + 65_535;
    let of_watches = granted - granted / 8;
    feed.send(vec![b'x'; 2 << 20]);
    frames.data(1, of_watches).await;
    reset_each(&mut frames).await;
}

/// CVE-2023-44487.
#[tokio::test]
async fn rapid_resets_end_the_connection_or_hold_no_memory() {
    let (connections, []) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    let before = resident();
    let (mut reads, mut writes) = tokio::io::split(&mut frames.io);
    let writing = async {
        for watch in 0..FRAMES as u32 {
            let stream = 2 * watch + 1;
            let mut both = encode(HEADERS, WHOLE_REQUEST, stream, &block(ONE_EVENT_PATH));
            both.extend(encode(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
            if writes.write_all(&both).await.is_err() {
                return;
            }
        }
    };
    let reading = async {
        let mut last = None;
        loop {
            let mut head = [0; 9];
            if reads.read_exact(&mut head).await.is_err() {
                return last;
            }
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            reads.read_exact(&mut payload).await.expect("a payload");
            last = Some((head[3], payload));
        }
    };
    let at_most = Duration::from_secs(2 * SECONDS_MAX);
    let ended = tokio::time::timeout(at_most, futures::future::join(writing, reading)).await;
    if let Ok(((), last)) = ended {
        let (kind, payload) = last.expect("a frame");
        assert_eq!((kind, &payload[4..8]), (GOAWAY, &[0, 0, 0, 11][..]));
    }
    let held = resident().saturating_sub(before);
    assert!(held < 4 * HELD_MAX, "{held} bytes");
}

#[tokio::test]
async fn a_hundred_watches_at_once_of_which_half_are_reset() {
    let (connections, []) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    for round in 0..20 {
        let streams = (0..100).map(|it| 2 * (round * 100 + it) + 1);
        let mut bytes = Vec::new();
        for stream in streams.clone() {
            bytes.extend(encode(
                HEADERS,
                WHOLE_REQUEST,
                stream,
                &block(ONE_EVENT_PATH),
            ));
        }
        frames.write(&bytes).await;
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        let mut resets = Vec::new();
        for stream in streams.clone().filter(|it| it % 4 == 1) {
            resets.extend(encode(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        }
        frames.write(&resets).await;
        let mut left: std::collections::HashSet<u32> =
            streams.clone().filter(|it| it % 4 == 3).collect();
        let mut heads = std::collections::HashSet::new();
        while !left.is_empty() {
            let frame = frames.next().await;
            match frame.kind {
                HEADERS => assert!(heads.insert(frame.stream), "{frame:?}"),
                DATA => {
                    assert!(heads.contains(&frame.stream), "{frame:?}");
                    assert_eq!(frame.payload, b"event", "{frame:?}");
                    left.remove(&frame.stream);
                }
                // h2 may say that too many were reset.
                GOAWAY => return,
                kind => assert_eq!(kind, RST_STREAM, "{frame:?}"),
            }
        }
        for stream in streams.filter(|it| it % 4 == 3) {
            frames.reset(stream).await;
        }
    }
}
