//! Section 5: the states of streams, their number, their priority, errors and extensions.

use super::*;
use crate::connection::tests::http2::watches::ONE_EVENT_PATH;

/// Encodes more requests that go on than streams are allowed: 98 beside the watches, and one.
fn too_many() -> Vec<u8> {
    let streams = (0..99).map(|it| OTHER + 2 * it);
    let requests = streams.map(|it| encode(HEADERS, WHOLE_REQUEST, it, &block(ONE_EVENT_PATH)));
    requests.flatten().collect()
}

fn depends(stream: u32) -> Vec<u8> {
    [&stream.to_be_bytes()[..], &[0xff]].concat()
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let none = Vec::new;
    let more = |stream| encode(CONTINUATION, END_HEADERS, stream, &block("/whoami"));
    vec![
        ("5.1/1 idle: DATA", none(), last_data(OTHER), ConnectionError(PROTOCOL)),
        ("5.1/2 idle: RST_STREAM", none(), reset(OTHER), ConnectionError(PROTOCOL)),
        ("5.1/3 idle: WINDOW_UPDATE", none(), grant(OTHER, 100), ConnectionError(PROTOCOL)),
        ("5.1/4 idle: CONTINUATION", none(), more(OTHER), ConnectionError(PROTOCOL)),
        ("5.1/5 half closed: DATA of a watch", none(), last_data(1), ConnectionError(STREAM_CLOSED)),
        ("5.1/6 half closed: HEADERS of a watch", none(), request(1), ConnectionError(STREAM_CLOSED)),
        ("5.1/7 half closed: CONTINUATION of a watch", none(), more(1), ConnectionError(PROTOCOL)),
        ("5.1/8 closed by RST_STREAM: DATA of a watch", reset(1), last_data(1), StreamError(1, STREAM_CLOSED)),
        ("5.1/9 closed by RST_STREAM: HEADERS of a watch", reset(1), request(1), ConnectionError(STREAM_CLOSED)),
        ("5.1/10 closed by RST_STREAM: CONTINUATION of a watch", reset(1), more(1), ConnectionError(PROTOCOL)),
        ("5.1 closed by RST_STREAM: WINDOW_UPDATE of a watch", reset(1), grant(1, 5), Nothing),
        ("5.1 closed by RST_STREAM: RST_STREAM of a watch", reset(1), reset(1), Nothing),
        ("5.1 closed by RST_STREAM: PRIORITY of a watch", reset(1), encode(PRIORITY, 0, 1, &depends(0)), Nothing),
        ("5.1/11 closed: DATA", request(OTHER), last_data(OTHER), StreamError(OTHER, STREAM_CLOSED)),
        ("5.1/12 closed: HEADERS", request(OTHER), request(OTHER), ConnectionError(STREAM_CLOSED)),
        ("5.1/13 closed: CONTINUATION", request(OTHER), more(OTHER), ConnectionError(PROTOCOL)),
        ("5.1 closed: WINDOW_UPDATE", request(OTHER), grant(OTHER, 5), Nothing),
        ("5.1.1/1 even stream", none(), request(OTHER + 1), ConnectionError(PROTOCOL)),
        ("5.1.1/2 lower stream", request(OTHER + 4), request(OTHER + 2), ConnectionError(PROTOCOL)),
        ("5.1.2/1 too many streams", none(), too_many(), StreamError(OTHER + 2 * 98, REFUSED)),
        ("5.3.1/1 HEADERS that depend on themselves", none(), encode(HEADERS, WHOLE_REQUEST | WITH_PRIORITY, OTHER, &[
            depends(OTHER), block("/whoami"),
        ].concat()), StreamError(OTHER, PROTOCOL)),
        ("5.3.1/2 PRIORITY of a watch that depends on itself", none(), encode(PRIORITY, 0, 1, &depends(1)), StreamError(1, PROTOCOL)),
        ("5.4.1/1 an error of the connection closes it", none(), encode(PING, 0, 0, &[0; 6]), ConnectionError(FRAME_SIZE)),
        ("5.5/1 unknown frame", none(), encode(UNKNOWN, 0xff, 1, b"anything"), Nothing),
        ("5.5/2 unknown frame within a block", none(), [
            begun_request(OTHER), encode(UNKNOWN, 0, 0, b"x"), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
    ]
}

#[tokio::test]
async fn frames_against_the_state_of_a_stream_are_errors() {
    run_all(cases()).await;
}
