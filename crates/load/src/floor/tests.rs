//! The floor against clients of the load generator.

use bytes::Bytes;
use tokio::try_join;

use super::*;
use crate::client::{ClientRequest, Encoding, EventKind};

/// Returns an event of the write with this number.
fn event(encoding: Encoding, number: u32) -> OwnedEvent {
    let object = format!(
        r#"{{"metadata":{{"resourceVersion":"{}"}},"stamp":"rwl1:000000:{number:08}:{:019};"}}"#,
        10 + number,
        5
    );
    OwnedEvent {
        kind: EventKind::Modified,
        revision: u64::from(10 + number),
        object: object.into(),
        encoding,
        ends_initial_events: false,
    }
}

#[tokio::test]
async fn watches_get_the_events_with_new_due_times() {
    let protocols = [Protocol::Http1, Protocol::Http2 { streams: 1 }];
    for (encoding, protocol) in [Encoding::Json, Encoding::Protobuf]
        .into_iter()
        .zip(protocols)
    {
        let floor = Floor::start(protocol).expect("a floor");
        let watching = async { Ok(floor.client().watch("/", encoding).await?) };
        let (mut watch, ()) = try_join!(watching, floor.take_watches(1)).expect("a watch");
        let schedule = Schedule::steady(1_000.0);
        let sent = [1, 2, 3].map(|number| event(encoding, number));
        floor.deliver(&sent, schedule).await.expect("a delivery");
        for (sent, write) in sent.iter().zip(0..) {
            let got = watch.next().await.expect("a watch").expect("an event");
            assert_eq!((got.kind, got.object.len()), (sent.kind, sent.object.len()));
            let (got, sent) = (Stamp::find(&got.object), Stamp::find(&sent.object));
            let (_, at) = schedule.due(write);
            assert_eq!(got, sent.map(|sent| Stamp { at, ..sent }));
        }
    }
}

#[tokio::test]
async fn watches_of_a_connection_get_a_copy_each() {
    let floor = Floor::start(Protocol::Http2 { streams: 2 }).expect("a floor");
    let watching = async {
        let mut connection = floor.client().connect().await?;
        let mut another = connection.another().expect("HTTP/2 shares connections");
        Ok(try_join!(
            connection.watch("/a", Encoding::Json),
            another.watch("/b", Encoding::Json)
        )?)
    };
    let (watches, ()) = try_join!(watching, floor.take_watches(2)).expect("watches");
    // More than one frame of HTTP/2.
    let large = OwnedEvent {
        object: [event(Encoding::Json, 1).object, vec![b' '; 40_000].into()]
            .concat()
            .into(),
        ..event(Encoding::Json, 1)
    };
    let sent = [large, event(Encoding::Json, 2)];
    let schedule = Schedule::steady(1_000.0);
    floor.deliver(&sent, schedule).await.expect("a delivery");
    for mut watch in [watches.0, watches.1] {
        for sent in &sent {
            let got = watch.next().await.expect("a watch").expect("an event");
            assert_eq!(got.object.len(), sent.object.len());
        }
    }
}

#[tokio::test]
async fn connections_that_are_not_full_are_refused() {
    let floor = Floor::start(Protocol::Http2 { streams: 3 }).expect("a floor");
    let error = floor.take_watches(4).await.expect_err("one is left over");
    assert!(
        error
            .to_string()
            .contains("4 watchers are no multiple of 3")
    );
}

#[test]
fn events_that_are_due_at_once_are_one_batch() {
    let events = [1, 2, 3, 4].map(|number| event(Encoding::Json, number));
    let lengths = |schedule| -> Vec<usize> {
        let batches = batches(&events, schedule, Protocol::Http1);
        let length = |batch: &Batch| match &batch.bodies {
            Bodies::Chunks(bytes) => bytes.len(),
            Bodies::Frames(_) => unreachable!("over HTTP/1.1"),
        };
        batches.iter().map(length).collect()
    };
    let alone = lengths(Schedule::steady(10.0));
    assert_eq!(alone.len(), 4);
    let pairs = lengths(Schedule::bursts(2, Duration::from_secs(1)));
    assert_eq!(pairs, [alone[0] + alone[1], alone[2] + alone[3]]);
}

#[tokio::test]
async fn requests_are_answered_with_the_bodies_in_turn() {
    let floor = Floor::start(Protocol::Http1).expect("a floor");
    let bodies = ["one", "two"].map(Bytes::from);
    let asking = async {
        let mut connection = floor.client().connect().await?;
        for wanted in ["one", "two", "one"] {
            let answer = connection.request(ClientRequest::get("/")).await?;
            assert_eq!(answer.success()?, wanted);
        }
        Ok(())
    };
    let answering = floor.answer(1, bodies.to_vec());
    let ((), spent) = try_join!(asking, answering).expect("answers");
    assert!(spent > Duration::ZERO);
}
