//! Section 8: requests, their fields and their bodies.

use super::*;

/// The fields of a request that needs a body.
const REQUEST: [(&str, &str); 5] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", READ_PATH),
    (":authority", "localhost"),
    ("authorization", "Bearer secret"),
];

/// Encodes the whole of a request that has no body, of these fields.
fn whole(all: &[(&str, &str)]) -> Vec<u8> {
    encode(HEADERS, WHOLE_REQUEST, OTHER, &fields(all))
}

/// Encodes a request with further fields behind.
fn and(more: &[(&str, &str)]) -> Vec<u8> {
    whole(&[&REQUEST[..], more].concat())
}

/// Encodes a request without one of its fields.
fn without(name: &str) -> Vec<u8> {
    let left: Vec<_> = REQUEST.into_iter().filter(|it| it.0 != name).collect();
    whole(&left)
}

/// Encodes the head of a request whose body is stated to be so long.
fn of_length(length: &str) -> Vec<u8> {
    let all = [&REQUEST[..], &[("content-length", length)]].concat();
    encode(HEADERS, END_HEADERS, OTHER, &fields(&all))
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let none = Vec::new;
    let malformed = StreamError(OTHER, PROTOCOL);
    let trailers = |all| encode(HEADERS, WHOLE_REQUEST, OTHER, &fields(all));
    let data = |flags, bytes: &[u8]| encode(DATA, flags, OTHER, bytes);
    vec![
        ("8.1/1 second HEADERS without END_STREAM", request_with_body(OTHER), encode(HEADERS, END_HEADERS, OTHER, &fields(&[("x-test", "ok")])), malformed),
        ("8.1 trailers", request_with_body(OTHER), [data(0, b"test"), trailers(&[("x-test", "ok")])].concat(), Answer(OTHER)),
        ("8.1.2/1 uppercase name", none(), and(&[("X-TEST", "ok")]), ConnectionError(PROTOCOL)),
        ("8.1.2.1/1 unknown pseudo-header", none(), whole(&[&[(":test", "ok")][..], &REQUEST].concat()), ConnectionError(PROTOCOL)),
        ("8.1.2.1/2 pseudo-header of an answer", none(), whole(&[&[(":status", "200")][..], &REQUEST].concat()), malformed),
        // h2 passes over it, where the standard has an error of the stream.
        ("8.1.2.1/3 pseudo-header as a trailer", request_with_body(OTHER), trailers(&[(":method", "GET")]), Answer(OTHER)),
        ("8.1.2.1/4 pseudo-header behind a field", none(), whole(&[&[("x-test", "ok")][..], &REQUEST].concat()), malformed),
        ("8.1.2.2/1 Connection", none(), and(&[("connection", "keep-alive")]), malformed),
        ("8.1.2.2/2 TE", none(), and(&[("te", "trailers, deflate")]), malformed),
        ("8.1.2.2 TE: trailers", none(), and(&[("te", "trailers")]), Answer(OTHER)),
        ("8.1.2.3/1 empty path", none(), whole(&[
            (":method", "GET"), (":scheme", "http"), (":path", ""), (":authority", "localhost"),
        ]), malformed),
        ("8.1.2.3/2 no method", none(), without(":method"), malformed),
        ("8.1.2.3/3 no scheme", none(), without(":scheme"), malformed),
        ("8.1.2.3/4 no path", none(), without(":path"), malformed),
        ("8.1.2.3/5 two methods", none(), whole(&[&[(":method", "GET")][..], &REQUEST].concat()), malformed),
        ("8.1.2.3/6 two schemes", none(), whole(&[&[(":scheme", "http")][..], &REQUEST].concat()), malformed),
        ("8.1.2.3/7 two paths", none(), whole(&[&[(":path", "/")][..], &REQUEST].concat()), malformed),
        ("8.1.2.6/1 a body of another length", none(), [of_length("1"), data(END_STREAM, b"test")].concat(), malformed),
        ("8.1.2.6/2 a body of another length in parts", none(), [of_length("1"), data(0, b"test"), data(END_STREAM, b"test")].concat(), malformed),
        ("8.1.2.6 a body that is too short", none(), [of_length("9"), data(END_STREAM, b"test")].concat(), malformed),
        ("8.1.2.6 a padded body of its length", none(), [of_length("4"), data(END_STREAM | PADDED, b"\x02test\0\0")].concat(), Answer(OTHER)),
        ("8.2/1 PUSH_PROMISE", none(), encode(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &block("/whoami")].concat()), ConnectionError(PROTOCOL)),
    ]
}

#[tokio::test]
async fn requests_that_are_malformed_end_alone() {
    run_all(cases()).await;
}
