//! The windows of watches that change while they run (RFC 9113, section 6.9).

use super::frames::Frames;
use super::watches::{LARGE, WATCH, fed};

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
