//! The generic cases of h2spec: each kind of frame as it should be, and what HPACK allows.

use super::*;

/// Encodes a request whose header block has these bytes at its beginning.
fn behind(update: &[u8]) -> Vec<u8> {
    let all = [update, &block("/whoami")].concat();
    encode(HEADERS, WHOLE_REQUEST, OTHER, &all)
}

/// Encodes a request whose header block has these bytes at its end.
fn before(field: &[u8]) -> Vec<u8> {
    let all = [&block("/whoami"), field].concat();
    encode(HEADERS, WHOLE_REQUEST, OTHER, &all)
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let none = Vec::new;
    vec![
        ("generic/2/1 a stream that is half closed gets its answer", none(), request(OTHER), Answer(OTHER)),
        ("generic/2/2 PRIORITY of an idle stream", none(), encode(PRIORITY, 0, OTHER + 10, &[0, 0, 0, 0, 1]), Nothing),
        ("generic/2/3 WINDOW_UPDATE of a watch", none(), grant(1, 1), Nothing),
        ("generic/2/4 PRIORITY of a watch", none(), encode(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]), Nothing),
        ("generic/2/5 RST_STREAM of a watch", none(), reset(1), Nothing),
        ("generic/3.1/1 DATA", request_with_body(OTHER), last_data(OTHER), Answer(OTHER)),
        ("generic/3.1/2 several DATA", request_with_body(OTHER), [encode(DATA, 0, OTHER, b"test"), last_data(OTHER)].concat(), Answer(OTHER)),
        ("generic/3.2/1 HEADERS", none(), request(OTHER), Answer(OTHER)),
        ("generic/3.3 PRIORITY with an exclusive dependency", none(), encode(PRIORITY, 0, 1, &[0x80, 0, 0, 3, 1]), Nothing),
        ("generic/3.5/1 SETTINGS", none(), setting(3, 100), Nothing),
        ("generic/3.7/1 PING", none(), encode(PING, 0, 0, b"01234567"), Nothing),
        ("generic/3.8/1 GOAWAY", none(), encode(GOAWAY, 0, 0, &[0; 8]), Nothing),
        ("generic/3.9/1 WINDOW_UPDATE of the connection", none(), grant(0, 1), Nothing),
        ("generic/3.10/1 CONTINUATION", none(), [begun_request(OTHER), end_of_block(OTHER)].concat(), Answer(OTHER)),
        ("generic/4 a request after GOAWAY", encode(GOAWAY, 0, 0, &[0; 8]), request(OTHER), Answer(OTHER)),
        ("generic/5/1 an indexed field", none(), request(OTHER), Answer(OTHER)),
        ("generic/5/2 a literal that is kept", none(), before(&[0x40, 1, b'x', 1, b'y']), Answer(OTHER)),
        ("generic/5/6 a literal that is not kept", none(), before(&[0x00, 1, b'x', 1, b'y']), Answer(OTHER)),
        ("generic/5/10 a literal that is never kept", none(), before(&[0x10, 1, b'x', 1, b'y']), Answer(OTHER)),
        ("generic/5/14 a smaller table", none(), behind(&[0x20]), Answer(OTHER)),
        ("generic/5/15 several sizes of the table", none(), behind(&[0x20, 0x3f, 0x01]), Answer(OTHER)),
        ("hpack/4.2/1 the size of the table at the end of a block", none(), before(&[0x00, 1, b'x', 1, b'y', 0x20]), ConnectionError(COMPRESSION)),
        ("hpack/6.1/1 index 0", none(), behind(&[0x80]), ConnectionError(COMPRESSION)),
        ("hpack/6.3/1 too large a table", none(), behind(&[0x3f, 0xe1, 0xff, 0x7f]), ConnectionError(COMPRESSION)),
    ]
}

#[tokio::test]
async fn frames_that_are_right_are_answered_beside_watches() {
    run_all(cases()).await;
}

/// Section 6.7/1: a PING is answered with its payload.
#[tokio::test]
async fn a_ping_is_answered_with_its_payload() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, WINDOW_BYTES, LARGE).await;
    open(&mut frames, 1).await;
    feed.send("event");
    frames.data(1, 5).await;
    frames.send(PING, 0, 0, b"h2spec..").await;
    loop {
        let frame = frames.read().await.expect("a frame");
        if frame.kind == PING && frame.flags == ACK && frame.payload == b"h2spec.." {
            break;
        }
    }
}
