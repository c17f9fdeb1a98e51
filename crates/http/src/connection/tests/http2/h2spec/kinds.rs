//! Sections 6 and 7: the kinds of frames, and the codes of errors.

use super::*;
use crate::connection::tests::http2::watches::ONE_EVENT_PATH;

/// Encodes the payload of a padded frame whose padding is stated to be so long.
fn padded(content: &[u8], stated: u8, padding: usize) -> Vec<u8> {
    [&[stated], content, &vec![0; padding]].concat()
}

#[rustfmt::skip]
fn data_and_headers() -> Vec<Case> {
    let none = Vec::new;
    let block = block("/whoami");
    let priority: &[u8] = &[0, 0, 0, 0, 15];
    let watch_with_body = || [
        encode(HEADERS, END_HEADERS, OTHER, &super::block(ONE_EVENT_PATH)),
    ].concat();
    let trailers = || encode(HEADERS, WHOLE_REQUEST, OTHER, &fields(&[("x-test", "ok")]));
    vec![
        ("6.1/1 DATA of stream 0", none(), encode(DATA, END_STREAM, 0, b"test"), ConnectionError(PROTOCOL)),
        ("6.1/2 DATA of a stream that is half closed", none(), last_data(1), ConnectionError(STREAM_CLOSED)),
        ("6.1/3 padding as long as DATA", request_with_body(OTHER), encode(DATA, END_STREAM | PADDED, OTHER, &[5, 0, 0, 0, 0]), ConnectionError(PROTOCOL)),
        ("6.1/3 padding longer than DATA of a watch", watch_with_body(), encode(DATA, PADDED, OTHER, &padded(b"test", 200, 10)), ConnectionError(PROTOCOL)),
        ("6.1 padded DATA without a length", request_with_body(OTHER), encode(DATA, END_STREAM | PADDED, OTHER, &[]), ConnectionError(FRAME_SIZE)),
        ("6.1 padded DATA", request_with_body(OTHER), encode(DATA, END_STREAM | PADDED, OTHER, &padded(b"test", 10, 10)), Answer(OTHER)),
        ("6.1 DATA of padding alone", request_with_body(OTHER), encode(DATA, END_STREAM | PADDED, OTHER, &padded(b"", 255, 255)), Answer(OTHER)),
        ("6.1 padded DATA of a watch", watch_with_body(), encode(DATA, PADDED, OTHER, &padded(b"test", 10, 10)), Nothing),
        ("6.1 empty DATA of a watch", watch_with_body(), encode(DATA, 0, OTHER, &[]), Nothing),
        ("6.1 the end of a watch's request", watch_with_body(), last_data(OTHER), Nothing),
        ("6.2/1 PRIORITY within a block", none(), [
            begun_request(OTHER), encode(PRIORITY, 0, OTHER, priority), end_of_block(OTHER),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.2/2 HEADERS of another stream within a block", none(), [begun_request(OTHER), request(OTHER + 2)].concat(), ConnectionError(PROTOCOL)),
        ("6.2/3 HEADERS of stream 0", none(), request(0), ConnectionError(PROTOCOL)),
        ("6.2/4 padding longer than HEADERS", none(), encode(HEADERS, WHOLE_REQUEST | PADDED, OTHER, &padded(&block, 255, 3)), ConnectionError(PROTOCOL)),
        ("6.2 padded HEADERS", none(), encode(HEADERS, WHOLE_REQUEST | PADDED, OTHER, &padded(&block, 20, 20)), Answer(OTHER)),
        ("6.2 padded HEADERS with priority", none(), encode(HEADERS, WHOLE_REQUEST | PADDED | WITH_PRIORITY, OTHER, &padded(&[priority, &block].concat(), 20, 20)), Answer(OTHER)),
        ("6.2 trailers of a watch's request", watch_with_body(), trailers(), Nothing),
        ("6.2 DATA and trailers of a watch's request", watch_with_body(), [encode(DATA, 0, OTHER, b"test"), trailers()].concat(), Nothing),
        ("6.2 DATA behind the trailers of a watch's request", [watch_with_body(), trailers()].concat(), last_data(OTHER), ConnectionError(STREAM_CLOSED)),
        ("6.2 WINDOW_UPDATE behind the trailers of a watch's request", [watch_with_body(), trailers()].concat(), grant(OTHER, 5), Nothing),
    ]
}

#[rustfmt::skip]
fn control() -> Vec<Case> {
    let none = Vec::new;
    let promised = [&[0, 0, 0, 2][..], &block("/whoami")].concat();
    vec![
        ("6.3/1 PRIORITY of stream 0", none(), encode(PRIORITY, 0, 0, &[0; 5]), ConnectionError(PROTOCOL)),
        ("6.3/2 PRIORITY of a wrong length", none(), encode(PRIORITY, 0, 1, &[0; 4]), ConnectionError(FRAME_SIZE)),
        ("6.3 PRIORITY of a watch", none(), encode(PRIORITY, 0, 1, &[0, 0, 0, 3, 255]), Nothing),
        ("6.4/1 RST_STREAM of stream 0", none(), reset(0), ConnectionError(PROTOCOL)),
        ("6.4/2 RST_STREAM of an idle stream", none(), reset(OTHER), ConnectionError(PROTOCOL)),
        ("6.4/3 RST_STREAM of a wrong length", none(), encode(RST_STREAM, 0, 1, &[0; 3]), ConnectionError(FRAME_SIZE)),
        ("6.5/1 SETTINGS that acknowledge, with a payload", none(), encode(SETTINGS, ACK, 0, &[0, 3, 0, 0, 0, 1]), ConnectionError(FRAME_SIZE)),
        ("6.5/2 SETTINGS of a watch", none(), encode(SETTINGS, 0, 1, &[0, 3, 0, 0, 0, 100]), ConnectionError(PROTOCOL)),
        ("6.5/3 SETTINGS of a wrong length", none(), encode(SETTINGS, 0, 0, &[0, 3, 0]), ConnectionError(FRAME_SIZE)),
        ("6.5 empty SETTINGS", none(), encode(SETTINGS, 0, 0, &[]), Nothing),
        ("6.5.2/1 ENABLE_PUSH", none(), setting(2, 2), ConnectionError(PROTOCOL)),
        ("6.5.2/2 INITIAL_WINDOW_SIZE", none(), setting(4, 1 << 31), ConnectionError(FLOW_CONTROL)),
        ("6.5.2/3 MAX_FRAME_SIZE below", none(), setting(5, 16_383), ConnectionError(PROTOCOL)),
        ("6.5.2/4 MAX_FRAME_SIZE above", none(), setting(5, 1 << 24), ConnectionError(PROTOCOL)),
        ("6.5.2/5 unknown setting", none(), setting(0xff, 1), Nothing),
        ("6.5.2 the largest MAX_FRAME_SIZE", none(), setting(5, (1 << 24) - 1), Nothing),
        ("6.5.3/1 the last of several windows counts", none(), encode(SETTINGS, 0, 0, &[
            [0, 4, 0, 0, 0, 0], [0, 4, 0, 0, 0, 100],
        ].concat()), Nothing),
        ("6.6 PUSH_PROMISE", none(), encode(PUSH_PROMISE, END_HEADERS, OTHER, &promised), ConnectionError(PROTOCOL)),
        ("6.6 PUSH_PROMISE of a watch", none(), encode(PUSH_PROMISE, END_HEADERS, 1, &promised), ConnectionError(PROTOCOL)),
        ("6.6 PUSH_PROMISE of stream 0", none(), encode(PUSH_PROMISE, END_HEADERS, 0, &promised), ConnectionError(PROTOCOL)),
        ("6.7/2 PING that acknowledges", none(), encode(PING, ACK, 0, b"unsent.."), Nothing),
        ("6.7/3 PING of a watch", none(), encode(PING, 0, 1, &[0; 8]), ConnectionError(PROTOCOL)),
        ("6.7/4 PING of a wrong length", none(), encode(PING, 0, 0, &[0; 6]), ConnectionError(FRAME_SIZE)),
        ("6.8/1 GOAWAY of a watch", none(), encode(GOAWAY, 0, 1, &[0; 8]), ConnectionError(PROTOCOL)),
        ("6.8 GOAWAY: the watches go on", none(), encode(GOAWAY, 0, 0, &[0; 8]), Nothing),
        ("6.8 GOAWAY of an error: the watches go on", none(), encode(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2, b'x']), Nothing),
        ("6.8 GOAWAY that is too short", none(), encode(GOAWAY, 0, 0, &[0; 7]), ConnectionError(FRAME_SIZE)),
    ]
}

#[rustfmt::skip]
fn windows_and_blocks() -> Vec<Case> {
    let none = Vec::new;
    let (largest, block) = (i32::MAX as u32, block("/whoami"));
    let more = |flags, part: &[u8]| encode(CONTINUATION, flags, OTHER, part);
    let begun = |part: &[u8]| encode(HEADERS, END_STREAM, OTHER, part);
    vec![
        ("6.9/1 no increment of the connection", none(), grant(0, 0), ConnectionError(PROTOCOL)),
        ("6.9/2 no increment of a watch", none(), grant(1, 0), ConnectionError(PROTOCOL)),
        ("6.9/3 wrong length, of a watch", none(), encode(WINDOW_UPDATE, 0, 1, &[0, 0, 1]), ConnectionError(FRAME_SIZE)),
        ("6.9/3 wrong length, of the connection", none(), encode(WINDOW_UPDATE, 0, 0, &[0; 5]), ConnectionError(FRAME_SIZE)),
        ("6.9 the reserved bit of a watch's increment", none(), grant(1, 1 << 31 | 5), Nothing),
        ("6.9.1/2 too large a window of the connection", none(), [grant(0, largest), grant(0, largest)].concat(), ConnectionError(FLOW_CONTROL)),
        ("6.9.1/3 too large a window of a watch", none(), [grant(1, largest), grant(1, largest)].concat(), StreamError(1, FLOW_CONTROL)),
        ("6.9.2/3 INITIAL_WINDOW_SIZE", none(), setting(4, 1 << 31), ConnectionError(FLOW_CONTROL)),
        ("6.9.2 a setting with which a watch's window is too large", none(), [
            grant(1, largest - WINDOW_BYTES), setting(4, WINDOW_BYTES + 100),
        ].concat(), ConnectionError(FLOW_CONTROL)),
        ("6.9.2 the largest window of a watch after a smaller setting", none(), [
            // The watch has used 5 bytes of it.
            setting(4, 50), grant(1, largest - 45),
        ].concat(), Nothing),
        ("6.10/1 several CONTINUATION", none(), [
            begun(&block[..2]), more(0, &block[2..5]), more(0, &[]), more(END_HEADERS, &block[5..]),
        ].concat(), Answer(OTHER)),
        ("6.10/2 CONTINUATION followed by another frame", none(), [
            begun(&block[..2]), more(0, &block[2..5]), encode(DATA, END_STREAM, OTHER, b"test"),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.10 CONTINUATION followed by a watch's WINDOW_UPDATE", none(), [
            begun(&block[..2]), more(0, &block[2..]), grant(1, 5), more(END_HEADERS, &[]),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.10/3 CONTINUATION of stream 0", none(), [
            begun(&block[..2]), encode(CONTINUATION, END_HEADERS, 0, &block[2..]),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.10/4 CONTINUATION behind HEADERS with END_HEADERS", none(), [
            encode(HEADERS, END_HEADERS, OTHER, &block), more(END_HEADERS, &block),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.10/5 CONTINUATION behind one with END_HEADERS", none(), [
            begun(&block[..2]), more(END_HEADERS, &block[2..]), more(END_HEADERS, &block),
        ].concat(), ConnectionError(PROTOCOL)),
        ("6.10/6 CONTINUATION behind DATA", none(), [
            encode(HEADERS, END_HEADERS, OTHER, &block), encode(DATA, END_STREAM, OTHER, b"test"), more(END_HEADERS, &block),
        ].concat(), ConnectionError(PROTOCOL)),
        ("7/1 GOAWAY of an unknown code", none(), encode(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xff]), Nothing),
        ("7/2 RST_STREAM of a watch, with an unknown code", none(), encode(RST_STREAM, 0, 1, &[0, 0, 0, 0xff]), Nothing),
    ]
}

#[tokio::test]
async fn data_and_headers_are_read_beside_watches() {
    run_all(data_and_headers()).await;
}

#[tokio::test]
async fn frames_of_the_connection_are_read_beside_watches() {
    run_all(control()).await;
}

#[tokio::test]
async fn windows_and_header_blocks_are_read_beside_watches() {
    run_all(windows_and_blocks()).await;
}
