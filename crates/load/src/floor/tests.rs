//! The floor against clients of the load generator.

use bytes::Bytes;
use tokio::try_join;

use super::*;
use crate::client::{Encoding, EventKind, Request};

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
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let floor = Floor::start().expect("a floor");
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

#[test]
fn events_that_are_due_at_once_are_one_batch() {
    let events = [1, 2, 3, 4].map(|number| event(Encoding::Json, number));
    let lengths = |schedule| -> Vec<usize> {
        let batches = batches(&events, schedule);
        batches.iter().map(|batch| batch.bytes.len()).collect()
    };
    let alone = lengths(Schedule::steady(10.0));
    assert_eq!(alone.len(), 4);
    let pairs = lengths(Schedule::bursts(2, Duration::from_secs(1)));
    assert_eq!(pairs, [alone[0] + alone[1], alone[2] + alone[3]]);
}

#[tokio::test]
async fn requests_are_answered_with_the_bodies_in_turn() {
    let floor = Floor::start().expect("a floor");
    let bodies = ["one", "two"].map(Bytes::from);
    let asking = async {
        let mut connection = floor.client().connect().await?;
        for wanted in ["one", "two", "one"] {
            let answer = connection.request(Request::get("/")).await?;
            assert_eq!(answer.success()?, wanted);
        }
        Ok(())
    };
    let answering = floor.answer(1, bodies.to_vec());
    let ((), spent) = try_join!(asking, answering).expect("answers");
    assert!(spent > Duration::ZERO);
}
