//! Watches over HTTP/2, which the connection writes itself: their windows, their order and their end.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::frames::{DATA, Frames, GOAWAY, RST_STREAM};
use super::*;

/// The window that Go's client grants, in bytes.
pub(super) const LARGE: u32 = 1 << 30;
/// The flag of the last frame of a stream.
pub(super) const END_STREAM: u8 = 1;
/// The code of an error of flow control.
pub(super) const FLOW_CONTROL_ERROR: [u8; 4] = [0, 0, 0, 3];
pub(super) const WATCH: &str = "/api/v1/pods?watch=1";
/// The path of an answer of [`LARGE_BYTES`].
const LARGE_PATH: &str = "/large";
/// More than the eighth of a window of 1 MiB that h2 has at first.
const LARGE_BYTES: usize = 1 << 20;

/// The path of an answer of so many chunks of 16,000 bytes.
pub(super) const HUGE_PATH: &str = "/huge";
pub(super) const HUGE_CHUNKS: usize = 4_000;
/// The path of a watch that has one event and goes on.
pub(super) const ONE_EVENT_PATH: &str = "/api/v1/nodes?watch=1";

/// The path of an answer that needs all of the request's body.
pub(super) const READ_PATH: &str = "/read";

type Event = Result<Frame<Bytes>, BoxError>;

/// Answers the watches in turn with the bodies that were made before.
#[derive(Debug, Default)]
struct Fed(Mutex<VecDeque<UnboundedReceiver<Event>>>);

#[async_trait]
impl Handler for Fed {
    async fn handle(&self, request: Request<RequestBody>, user: &str) -> Response<ResponseBody> {
        match request.uri().path_and_query().map_or("", |it| it.as_str()) {
            WATCH => {}
            HUGE_PATH => {
                let chunk = Bytes::from_static(&[b'x'; 16_000]);
                let chunks = std::iter::repeat_with(move || Ok(Frame::data(chunk.clone())));
                let chunks = futures::stream::iter(chunks.take(HUGE_CHUNKS));
                return Response::new(StreamBody::new(chunks).boxed_unsync());
            }
            ONE_EVENT_PATH => return one_event(),
            READ_PATH => return read(request.into_body()).await,
            LARGE_PATH => return Response::new(full(vec![b'x'; LARGE_BYTES])),
            _ => return Response::new(full(user.to_owned())),
        }
        let mut bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = bodies.pop_front().expect("a body");
        let events = futures::stream::poll_fn(move |context| events.poll_recv(context));
        let mut response = Response::new(StreamBody::new(events).boxed_unsync());
        let deadline = Clock::real().now() + Duration::from_secs(SECONDS_MAX);
        response.extensions_mut().insert(EventStream {
            deadline,
            shared: None,
        });
        response
    }
}

/// Answers with the length of a request's body, or with an error if it does not come.
async fn read(body: RequestBody) -> Response<ResponseBody> {
    match body.collect().await {
        Ok(body) => Response::new(full(body.to_bytes().len().to_string())),
        Err(error) => {
            let mut response = Response::new(full(error.to_string()));
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
            response
        }
    }
}

/// Returns a watch that has one event and goes on.
fn one_event() -> Response<ResponseBody> {
    let event = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"event")))]);
    let events = futures::StreamExt::chain(event, futures::stream::pending());
    let mut response = Response::new(StreamBody::new(events).boxed_unsync());
    let deadline = Clock::real().now() + Duration::from_secs(SECONDS_MAX);
    response.extensions_mut().insert(EventStream {
        deadline,
        shared: None,
    });
    response
}

/// The sender of a watch's events.
pub(super) struct Feed(UnboundedSender<Event>);

impl Feed {
    pub(super) fn send(&self, event: impl Into<Bytes>) {
        let sent = self.0.send(Ok(Frame::data(event.into())));
        sent.expect("a watch");
    }

    /// Returns true if the watch has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Returns connections whose watches are fed by hand, so many of them.
pub(super) fn fed<const WATCHES: usize>() -> (Connections, [Feed; WATCHES]) {
    let (fed, api) = (Fed::default(), |fed| {
        testing::connections(
            Arc::new(fed),
            &Ledger::unlimited(),
            &testing::certificates(),
        )
    });
    let feeds = [(); WATCHES].map(|()| {
        let (sender, receiver) = unbounded_channel();
        let mut bodies = fed.0.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.push_back(receiver);
        Feed(sender)
    });
    (api(fed), feeds)
}

/// Opens the first watches of a connection, on the streams 1, 3, 5, ...
pub(super) async fn open(frames: &mut Frames, watches: u32) {
    for watch in 0..watches {
        frames.get(2 * watch + 1, WATCH).await;
    }
}

#[tokio::test]
async fn events_come_in_order_and_the_end_behind_them() {
    let (connections, [first, second]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    open(&mut frames, 2).await;
    for event in 0..100 {
        let event = format!("event {event:03}\n");
        first.send(event.clone());
        assert_eq!(frames.data(1, event.len()).await, event.as_bytes());
        second.send(event.clone());
        assert_eq!(frames.data(3, event.len()).await, event.as_bytes());
    }
    first.send("one ");
    first.send("two ");
    first.send("three");
    drop(first);
    assert_eq!(frames.data(1, 13).await, b"one two three");
    let end = frames.next().await;
    let found = (end.kind, end.flags, end.stream, end.payload.len());
    assert_eq!(found, (DATA, END_STREAM, 1, 0));
    second.send("later");
    assert_eq!(frames.data(3, 5).await, b"later");
}

#[tokio::test]
async fn a_stream_without_window_waits_and_no_other_does() {
    let (connections, [slow, other]) = fed();
    let mut frames = Frames::connect(connections, 3, LARGE).await;
    open(&mut frames, 2).await;
    slow.send("0123456789");
    assert_eq!(frames.data(1, 3).await, b"012");
    frames.grant(3, 1_000).await;
    other.send("other".repeat(100));
    assert_eq!(frames.data(3, 500).await, "other".repeat(100).as_bytes());
    frames.grant(1, 4).await;
    assert_eq!(frames.data(1, 4).await, b"3456");
    // The windows of open streams change with the setting.
    frames.set_window(4).await;
    assert_eq!(frames.data(1, 1).await, b"7");
    frames.grant(1, 100).await;
    assert_eq!(frames.data(1, 2).await, b"89");
}

#[tokio::test]
async fn a_window_granted_before_the_watch_begins_counts() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, 0, LARGE).await;
    frames.get(1, WATCH).await;
    frames.grant(1, 5).await;
    feed.send("0123456789");
    assert_eq!(frames.data(1, 5).await, b"01234");
}

#[tokio::test]
async fn watches_leave_a_part_of_the_window_to_other_requests() {
    const MORE: u32 = 1 << 20;
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, MORE).await;
    open(&mut frames, 1).await;
    // An eighth belongs to the others.
    let granted = MORE as usize + 65_535;
    let of_watches = granted - granted / 8;
    for _ in 0..200 {
        feed.send(vec![b'x'; 10_000]);
    }
    frames.data(1, of_watches).await;
    frames.get(3, "/whoami").await;
    let answer = frames.next().await;
    assert_eq!((answer.stream, &*answer.payload), (3, &b"ann"[..]));
    frames.grant(0, LARGE).await;
    frames.data(1, 2_000_000 - of_watches).await;
}

#[tokio::test]
async fn an_answer_may_use_all_of_the_window() {
    let (connections, [feed]) = fed();
    let more = u32::try_from(LARGE_BYTES).expect("a small number") - 65_535;
    let mut frames = Frames::connect(connections, LARGE, more).await;
    frames.get(1, LARGE_PATH).await;
    frames.data(1, LARGE_BYTES).await;
    // A watch gets what is granted then, and the next answer too.
    frames.get(3, WATCH).await;
    frames.grant(0, more).await;
    feed.send("event");
    assert_eq!(frames.data(3, 5).await, b"event");
    frames.get(5, LARGE_PATH).await;
    frames.data(5, more as usize - 5).await;
    feed.send("later");
    frames.grant(0, LARGE).await;
    let (mut of_watch, mut of_answer) = (0, 0);
    while (of_watch, of_answer) != (5, 65_535 + 5) {
        let frame = frames.next().await;
        match frame.stream {
            3 => of_watch += frame.payload.len(),
            _ => of_answer += frame.payload.len(),
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_drops_its_watches() {
    let (connections, [ready, idle]) = fed();
    let mut frames = Frames::connect(connections, 3, LARGE).await;
    open(&mut frames, 2).await;
    ready.send("event");
    frames.data(1, 3).await;
    drop(frames);
    let at_most = Duration::from_secs(SECONDS_MAX);
    for feed in [ready, idle] {
        // An event puts the watch on the list of the connection, if there is one yet.
        let _ = feed.0.send(Ok(Frame::data("later".into())));
        let closed = tokio::time::timeout(at_most, feed.0.closed()).await;
        closed.expect("the body is dropped");
    }
}

#[tokio::test]
async fn with_a_small_window_requests_and_watches_share_it() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, 0).await;
    open(&mut frames, 1).await;
    feed.send(vec![b'x'; 60_000]);
    frames.data(1, 60_000).await;
    frames.get(3, "/whoami").await;
    let answer = frames.next().await;
    assert_eq!((answer.stream, &*answer.payload), (3, &b"ann"[..]));
    feed.send(vec![b'x'; 60_000]);
    let rest = 65_535 - 60_000 - 3;
    frames.data(1, rest).await;
    frames.grant(0, 60_000).await;
    frames.data(1, 60_000 - rest).await;
}

#[tokio::test]
async fn a_reset_ends_one_watch_and_no_other() {
    let (connections, [first, second]) = fed();
    let mut frames = Frames::connect(connections, 100, LARGE).await;
    open(&mut frames, 2).await;
    first.send(vec![b'x'; 150]);
    frames.data(1, 100).await;
    frames.reset(1).await;
    let at_most = Duration::from_secs(SECONDS_MAX);
    let closed = tokio::time::timeout(at_most, first.0.closed()).await;
    closed.expect("the body is dropped");
    second.send("second");
    assert_eq!(frames.data(3, 6).await, b"second");
}

#[tokio::test]
async fn a_reset_while_a_watch_goes_over_is_nothing_to_later_ones() {
    /// h2 writes it as one frame, a connection that writes a watch as two.
    const EVENT_BYTES: usize = 16 << 10;
    let (connections, [_reset, later]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    // h2 has a frame for which there is no room, behind which all others wait.
    frames.get(1, HUGE_PATH).await;
    yield_often().await;
    frames.request(3, WATCH).await;
    yield_often().await;
    frames.reset(3).await;
    yield_often().await;
    frames.reset(1).await;
    frames.request(5, WATCH).await;
    later.send(vec![b'x'; EVENT_BYTES]);
    let event = loop {
        let frame = frames.next().await;
        if (frame.kind, frame.stream) == (DATA, 5) {
            break frame.payload.len();
        }
        assert_ne!(frame.stream, 3, "it was reset first");
    };
    assert!(event < EVENT_BYTES, "h2 has written it");
}

/// Lets the server go on until it waits for its client.
async fn yield_often() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_body_that_fails_resets_its_stream() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    open(&mut frames, 1).await;
    feed.send("event");
    let error: BoxError = io::Error::from(io::ErrorKind::TimedOut).into();
    feed.0.send(Err(error)).expect("a watch");
    assert_eq!(frames.data(1, 5).await, b"event");
    let end = frames.next().await;
    assert_eq!((end.kind, end.stream), (RST_STREAM, 1));
}

#[tokio::test]
async fn after_goaway_a_watch_goes_on_to_its_end() {
    let (connections, [feed]) = fed();
    let closing = connections.closing.clone();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    open(&mut frames, 1).await;
    closing.cancel();
    assert_eq!(frames.next().await.kind, GOAWAY);
    feed.send("event");
    feed.send(" and the last");
    drop(feed);
    let mut text = Vec::new();
    loop {
        let frame = frames.next().await;
        match (frame.kind, frame.flags) {
            (DATA, flags) => {
                text.extend(frame.payload);
                if flags == END_STREAM {
                    break;
                }
            }
            (kind, _) => assert_eq!(kind, GOAWAY, "the final one"),
        }
    }
    assert_eq!(text, b"event and the last");
    let last = frames.last().await;
    assert!(last.is_none_or(|it| it.kind == GOAWAY));
}

#[tokio::test]
async fn a_window_that_overflows_is_an_error() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    open(&mut frames, 1).await;
    feed.send("event");
    frames.data(1, 5).await;
    for _ in 0..2 {
        frames.grant(1, LARGE).await;
    }
    let end = frames.next().await;
    assert_eq!((end.kind, end.stream), (RST_STREAM, 1), "{end:?}");
    assert_eq!(end.payload, FLOW_CONTROL_ERROR);
    frames.grant(0, LARGE).await;
    let end = frames.last().await.expect("a last frame");
    assert_eq!(end.kind, GOAWAY, "{end:?}");
    assert_eq!(end.payload[4..8], FLOW_CONTROL_ERROR);
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_back_its_own_watches_only() {
    let (connections, [feed]) = fed();
    let mut frames = Frames::connect(connections, LARGE, LARGE).await;
    open(&mut frames, 1).await;
    let sent: Vec<u8> = (0..2_000_000_u32).map(|it| (it % 251) as u8).collect();
    for part in sent.chunks(30_011) {
        feed.send(part.to_vec());
    }
    // The pipe between both ends is far smaller, so that writes are pending meanwhile.
    assert_eq!(frames.data(1, sent.len()).await, sent);
    frames.get(3, "/whoami").await;
    let answer = frames.next().await;
    assert_eq!((answer.stream, &*answer.payload), (3, &b"ann"[..]));
}
