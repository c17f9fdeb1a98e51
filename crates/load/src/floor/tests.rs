//! The floor against clients of the load generator.

use bytes::Bytes;
use tokio::try_join;

use super::*;
use crate::client::{ClientRequest, Encoding, EventKind, RequestContent};

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

/// Has a connection ask a floor, which answers this. Returns the bytes that came and the processor time.
async fn ask(
    protocol: Protocol,
    recorded: RecordedAnswers,
    requests: Vec<ClientRequest>,
) -> (u64, Duration) {
    let floor = Floor::start(protocol).expect("a floor");
    let bodies = recorded.bodies.clone();
    let asking = async {
        let mut connection = floor.client().connect().await?;
        for (request, wanted) in requests.into_iter().zip(bodies.iter().cycle()) {
            let answer = connection.request(request).await?;
            assert_eq!(answer.success()?, wanted);
        }
        Ok(connection.received_bytes())
    };
    let answering = floor.answer(1, recorded);
    try_join!(asking, answering).expect("answers")
}

const ONE_AND_TWO: [Protocol; 2] = [Protocol::Http1, Protocol::Http2 { streams: 1 }];

#[tokio::test]
async fn requests_are_answered_with_the_bodies_in_turn() {
    for protocol in ONE_AND_TWO {
        let recorded = RecordedAnswers {
            bodies: ["one", "two", ""].map(Bytes::from).to_vec(),
            head_bytes: 0,
        };
        let requests = vec![ClientRequest::get("/"); 4];
        let (_, spent) = ask(protocol, recorded, requests).await;
        assert!(spent > Duration::ZERO);
    }
}

/// Answers take as many bytes as those of the server did, and requests of every length are read to their end.
#[tokio::test]
async fn answers_have_the_bytes_that_are_asked_for() {
    const HEAD_BYTES: usize = 211;
    for protocol in ONE_AND_TWO {
        for body_bytes in [0, 1_000, 100_000] {
            let came = async |count: usize| {
                let recorded = RecordedAnswers {
                    bodies: vec![vec![b'a'; body_bytes].into()],
                    head_bytes: HEAD_BYTES,
                };
                let request = |number| {
                    // The largest is more than the windows of HTTP/2 are by themselves.
                    let bytes = vec![b'q'; [1, 70_000, 1_500_000][number % 3]].into();
                    let media_type = Encoding::Json.media_type();
                    ClientRequest::put("/one", RequestContent { media_type, bytes })
                };
                let requests = (0..count).map(request).collect();
                ask(protocol, recorded, requests).await.0
            };
            // What comes once for a connection is in both.
            let more = came(5).await - came(2).await;
            assert_eq!(more, 3 * (HEAD_BYTES + body_bytes) as u64, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_an_error() {
    let floor = Floor::start(Protocol::Http1).expect("a floor");
    let asking = async {
        let content = RequestContent {
            media_type: Encoding::Json.media_type(),
            bytes: vec![b' '; REQUEST_BODY_BYTES_MAX + 1].into(),
        };
        let mut connection = floor.client().connect().await?;
        let request = ClientRequest::put("/", content);
        assert!(connection.request(request).await.is_err());
        Ok::<(), LoadError>(())
    };
    let recorded = RecordedAnswers {
        bodies: vec![Bytes::from_static(b"one")],
        head_bytes: 0,
    };
    let (asked, answered) = tokio::join!(asking, floor.answer(1, recorded));
    asked.expect("a connection");
    assert!(answered.is_err());
}
