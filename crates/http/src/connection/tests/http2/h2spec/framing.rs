//! Sections 3.5 to 4.3: the preface, the format and the size of frames, header blocks.

use super::*;

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let none = Vec::new;
    let ping = |flags| encode(PING, flags, 0, b"01234567");
    let large = vec![b'x'; FRAME_BYTES_MAX];
    let too_large = vec![b'x'; FRAME_BYTES_MAX + 1];
    vec![
        ("4.1/1 unknown frame", none(), encode(UNKNOWN, 0, 0, &[0; 8]), Nothing),
        ("4.1/2 undefined flags", none(), ping(0xfe), Nothing),
        ("4.1/3 reserved bit of a stream", none(), encode(PING, 0, 1 << 31, b"01234567"), Nothing),
        ("4.1/3 reserved bit of a watch", none(), grant(1 << 31 | 1, 5), Nothing),
        ("4.2/1 the largest DATA", request_with_body(OTHER), encode(DATA, END_STREAM, OTHER, &large), Answer(OTHER)),
        ("4.2/2 too large DATA", request_with_body(OTHER), encode(DATA, END_STREAM, OTHER, &too_large), ConnectionError(FRAME_SIZE)),
        ("4.2/2 too large DATA of a watch", none(), encode(DATA, 0, 1, &too_large), ConnectionError(FRAME_SIZE)),
        ("4.2/3 too large HEADERS", none(), encode(HEADERS, WHOLE_REQUEST, OTHER, &too_large), ConnectionError(FRAME_SIZE)),
        ("4.2 too large unknown frame", none(), encode(UNKNOWN, 0, 0, &too_large), ConnectionError(FRAME_SIZE)),
        ("4.2 too large SETTINGS", none(), encode(SETTINGS, 0, 0, &[0; FRAME_BYTES_MAX + 2]), ConnectionError(FRAME_SIZE)),
        ("4.3/1 invalid header block", none(), encode(HEADERS, WHOLE_REQUEST, OTHER, &[0, 4, 0xff, 0xff]), ConnectionError(COMPRESSION)),
        ("4.3/1 invalid trailers of a watch", none(), encode(HEADERS, WHOLE_REQUEST, 1, &[0xc0]), ConnectionError(COMPRESSION)),
        ("4.3/2 PRIORITY within a block", none(), [
            begun_request(OTHER), encode(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
        ("4.3/3 HEADERS within a block", none(), [begun_request(OTHER), request(OTHER + 2)].concat(), ConnectionError(PROTOCOL)),
        ("4.3 a watch's WINDOW_UPDATE within a block", none(), [
            begun_request(OTHER), grant(1, 5), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
        ("4.3 the connection's WINDOW_UPDATE within a block", none(), [
            begun_request(OTHER), grant(0, 5), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
        ("4.3 RST_STREAM of a watch within a block", none(), [
            begun_request(OTHER), reset(1), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
        ("4.3 SETTINGS within a block", none(), [
            begun_request(OTHER), setting(4, 5), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
    ]
}

#[tokio::test]
async fn frames_that_are_malformed_end_what_they_concern() {
    run_all(cases()).await;
}

/// Section 3.5/2.
#[tokio::test]
async fn a_client_with_another_preface_is_sent_away() {
    let (connections, []) = fed();
    let mut frames = Frames::begin(connections);
    frames.write(b"INVALID CONNECTION PREFACE\r\n\r\n").await;
    let last = frames.last().await;
    assert!(last.is_none_or(|frame| frame.kind == GOAWAY));
}

/// Section 3.5/1: the server's first frame is SETTINGS.
#[tokio::test]
async fn the_server_begins_with_settings() {
    let (connections, []) = fed();
    let mut frames = Frames::connect(connections, WINDOW_BYTES, 0).await;
    let first = frames.read().await.expect("a frame");
    assert_eq!((first.kind, first.flags, first.stream), (SETTINGS, 0, 0));
}
