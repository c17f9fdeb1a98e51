//! Memory held for watches that are reset.

mod following;

use std::pin::Pin;
use std::task::Poll;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body;
use ringwatch::budget::Ledger;

use super::*;
use crate::body::{BoxError, ResponseBody, full};
use crate::http2_frames::WINDOW_UPDATE;
use crate::outgoing::Outgoing;
use crate::preface::PREFACE_BYTES;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        length: payload.len(),
        kind,
        flags,
        stream,
    };
    [&header.encode()[..], payload].concat()
}

/// Returns the watches of a connection with a window of 1 MiB.
fn with_window() -> (Handovers, ConnectionWatches) {
    let handovers = Handovers::default();
    let mut watches = ConnectionWatches::new(handovers.clone());
    let mut begun = vec![0; PREFACE_BYTES];
    begun.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes()));
    watches.receive(&begun, &mut Vec::new()).expect("frames");
    (handovers, watches)
}

/// Returns the watches of a connection with a window of 1 MiB, of which they have used their part.
fn without_window() -> (Handovers, ConnectionWatches) {
    let (handovers, mut watches) = with_window();
    let all = watches.windows.of_watches();
    watches.windows.sent_by_watch(all);
    (handovers, watches)
}

#[test]
fn a_watch_that_is_reset_does_not_wait_for_the_window_of_the_connection() {
    let outgoing = Outgoing::new(&Ledger::unlimited());
    let (handovers, mut watches) = without_window();
    let mut context = Context::from_waker(Waker::noop());
    for watch in 0..1_000 {
        let stream = 2 * watch + 1;
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, b"");
        watches.receive(&request, &mut Vec::new()).expect("frames");
        let body = outgoing.begin().count(full("event").into());
        let mut body = handovers.watch(body);
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        let mut out = Vec::new();
        watches.pass(&frame(DATA, 0, stream, b""), &mut out, 1 << 14);
        assert_eq!(
            watches.write(&mut context, &mut out, 1 << 14),
            FrameProgress::Done
        );
        assert!(out.is_empty(), "there is no window");
        let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
        watches.receive(&reset, &mut Vec::new()).expect("frames");
        drop(body);
        watches.write(&mut context, &mut out, 1 << 14);
    }
    assert!(watches.streams.is_empty());
    assert_eq!(watches.starved.len(), 0);
}

#[test]
fn a_watch_that_is_reset_before_it_goes_over_keeps_no_other_from_that() {
    let outgoing = Outgoing::new(&Ledger::unlimited());
    let (handovers, mut watches) = without_window();
    let mut context = Context::from_waker(Waker::noop());
    let watch = || handovers.watch(outgoing.begin().count(full("event").into()));
    // Returns true if the body begins with the frame by which a watch goes over.
    let mut is_announced = |body: &mut body::StreamBody| {
        let frame = Pin::new(body).poll_frame(&mut context);
        matches!(frame, Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(|it| it.remaining() == 0))
    };
    let mut reset = watch();
    assert!(is_announced(&mut reset));
    drop(reset);
    let mut meanwhile = watch();
    assert!(!is_announced(&mut meanwhile), "the frame may still come");
    watches.h2_flushed();
    let mut later = watch();
    assert!(is_announced(&mut later));
    // The frame of a watch that has not ended is waited for.
    watches.h2_flushed();
    watches
        .receive(
            &frame(HEADERS, END_HEADERS | END_STREAM, 5, b""),
            &mut Vec::new(),
        )
        .expect("frames");
    watches.pass(&frame(DATA, 0, 5, b""), &mut Vec::new(), 1 << 14);
    assert!(watches.streams[&5].watch.is_some());
}

#[test]
fn a_connection_that_ends_frees_its_ready_watches() {
    let outgoing = Outgoing::new(&Ledger::unlimited());
    let (handovers, mut watches) = without_window();
    let mut context = Context::from_waker(Waker::noop());
    let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"");
    watches.receive(&request, &mut Vec::new()).expect("frames");
    let body = outgoing.begin().count(full("event").into());
    let mut body = handovers.watch(body);
    assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
    // It is ready as soon as it has gone over.
    watches.pass(&frame(DATA, 0, 1, b""), &mut Vec::new(), 1 << 14);
    let slot = watches.streams[&1].watch.as_ref().map(Arc::downgrade);
    let slot = slot.expect("a watch");
    drop((watches, body, handovers));
    assert!(slot.upgrade().is_none());
}

#[test]
fn h2_reads_once_it_is_to_get_a_part_of_the_watches_window() {
    let mut watches = ConnectionWatches::new(Handovers::default());
    let mut begun = vec![0; PREFACE_BYTES];
    begun.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes()));
    watches.receive(&begun, &mut Vec::new()).expect("frames");
    let mut update = Vec::new();
    watches.refill(&mut update);
    assert_eq!((watches.take_refill_due(), update.len()), (false, 0));
    let answer = frame(DATA, 0, 1, &[0; 100_000]);
    watches.pass(&answer, &mut Vec::new(), 1 << 20);
    assert!(watches.take_refill_due());
    assert!(!watches.take_refill_due(), "once");
    // Within a frame of the client there is no place for another.
    watches.receive(&[0, 0], &mut Vec::new()).expect("frames");
    watches.refill(&mut update);
    assert!(update.is_empty());
    let rest = frame(RST_STREAM, 0, 1, &[0; 4]).split_off(2);
    watches.receive(&rest, &mut Vec::new()).expect("frames");
    watches.refill(&mut update);
    assert_eq!(update.len(), HEADER_BYTES + 4);
}

/// Begins a watch that goes over to the connection.
fn begin(
    (handovers, watches): (&Handovers, &mut ConnectionWatches),
    stream: u32,
    content: ResponseBody,
) -> body::StreamBody {
    let outgoing = Outgoing::new(&Ledger::unlimited());
    let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, b"");
    watches.receive(&request, &mut Vec::new()).expect("frames");
    let body = outgoing.begin().count(content.into());
    let mut body = handovers.watch(body);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
    watches.pass(&frame(DATA, 0, stream, b""), &mut Vec::new(), 1 << 14);
    body
}

/// Returns how many bytes of events each of two streams was written.
fn written(mut out: &[u8]) -> [usize; 2] {
    let mut written = [0, 0];
    let mut position = FramePosition::default();
    while !out.is_empty() {
        let (taken, header) = position.take_header(out);
        let header = header.expect("whole frames");
        written[header.stream as usize / 2] += header.length;
        out = &out[taken..];
        out = &out[position.take_payload(out)..];
    }
    written
}

/// A window is used up and granted again many times while a watch lasts.
#[test]
fn watches_that_starve_again_and_again_get_all_their_events() {
    const BYTES: usize = 20_000;
    const GRANT: u32 = 700;
    let (handovers, mut watches) = without_window();
    let mut context = Context::from_waker(Waker::noop());
    let streams = [1, 3].map(|stream| {
        let content = full(vec![b'x'; BYTES]);
        begin((&handovers, &mut watches), stream, content)
    });
    let mut all = [0, 0];
    for grants in 1..=2 * BYTES / GRANT as usize + 1 {
        let mut out = Vec::new();
        assert_eq!(
            watches.write(&mut context, &mut out, 1 << 14),
            FrameProgress::Done
        );
        assert!(out.is_empty(), "there is no window");
        let update = frame(WINDOW_UPDATE, 0, 0, &GRANT.to_be_bytes());
        watches.receive(&update, &mut Vec::new()).expect("frames");
        watches.write(&mut context, &mut out, 1 << 14);
        for (all, written) in all.iter_mut().zip(written(&out)) {
            *all += written;
        }
        let granted = (grants * GRANT as usize).min(2 * BYTES);
        assert_eq!(all.iter().sum::<usize>(), granted, "nobody waits in vain");
    }
    assert_eq!(all, [BYTES, BYTES]);
    drop(streams);
}

/// An event may come after its watch was found to have none, and before it is left.
#[test]
fn an_event_that_comes_while_its_watch_is_looked_at_is_written() {
    const EVENTS: usize = 40;
    for together in [1, 3, FRAMES_AT_ONCE_MAX, FRAMES_AT_ONCE_MAX + 1] {
        let (handovers, mut watches) = with_window();
        let mut context = Context::from_waker(Waker::noop());
        let (mut left, mut until_gap) = (EVENTS, 0);
        let events = futures::stream::poll_fn(move |context: &mut Context<'_>| {
            if left == 0 {
                return Poll::Pending;
            }
            if until_gap == 0 {
                until_gap = together;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            (left, until_gap) = (left - 1, until_gap - 1);
            let event = hyper::body::Frame::data(Bytes::from_static(b"event"));
            Poll::Ready(Some(Ok::<_, BoxError>(event)))
        });
        let content = http_body_util::StreamBody::new(events).boxed_unsync();
        let stream = begin((&handovers, &mut watches), 1, content);
        let mut out = Vec::new();
        watches.write(&mut context, &mut out, 1 << 14);
        assert_eq!(written(&out), [EVENTS * b"event".len(), 0], "{together}");
        drop(stream);
    }
}

/// Returns how many bytes of events the watches write to stream 1 until they wait.
fn drained(watches: &mut ConnectionWatches) -> usize {
    let mut all = 0;
    loop {
        let mut out = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        watches.write(&mut context, &mut out, 1 << 15);
        let [bytes, _] = written(&out);
        if bytes == 0 {
            return all;
        }
        all += bytes;
    }
}

/// A quiet watch has no event that would wake it, so what the client grants does.
#[test]
fn what_the_client_grants_to_a_stream_is_used_at_once() {
    const INITIAL: usize = 65_535;
    const BYTES: usize = 100_000;
    let update = frame(WINDOW_UPDATE, 0, 1, &(BYTES as u32).to_be_bytes());
    let setting = [&[0, 4], &(BYTES as u32).to_be_bytes()[..]].concat();
    let settings = frame(SETTINGS, 0, 0, &setting);
    let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"");
    // Granted before the watch goes over, and afterwards in both ways.
    for (before, after, at_first) in [
        (Some(&update), None, BYTES),
        (None, Some(&update), INITIAL),
        (None, Some(&settings), INITIAL),
    ] {
        let (handovers, mut watches) = with_window();
        watches.receive(&request, &mut Vec::new()).expect("frames");
        if let Some(granted) = before {
            watches.receive(granted, &mut Vec::new()).expect("frames");
        }
        let content = full(vec![b'x'; BYTES]);
        let stream = begin((&handovers, &mut watches), 1, content);
        assert_eq!(drained(&mut watches), at_first);
        if let Some(granted) = after {
            watches.receive(granted, &mut Vec::new()).expect("frames");
        }
        // h2 acknowledges settings.
        watches.pass(&frame(SETTINGS, ACK, 0, b""), &mut Vec::new(), 1 << 14);
        assert_eq!(at_first + drained(&mut watches), BYTES);
        drop(stream);
    }
}
