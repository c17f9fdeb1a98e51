//! Tests of the informer, over stores in memory.

use std::sync::Mutex;

use futures::FutureExt;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::testing::{Fixture, TestStrategy, context};
use crate::{DeleteOptions, Informer};

fn fixture() -> Fixture {
    Fixture::new(TestStrategy::default())
}

async fn create(fixture: &Fixture, name: &str) {
    fixture.create(json!({"name": name})).await;
}

async fn delete(fixture: &Fixture, name: &str) {
    let options = DeleteOptions::default();
    let deleted = fixture
        .store
        .delete(&fixture.context, "ns", name, options)
        .await;
    deleted.expect("it can be deleted");
}

fn informer<'a, S: Copy + Send + Sync + 'a>(
    sources: impl IntoIterator<Item = (S, &'a dyn ListWatch)>,
) -> Informer<'a, S> {
    Informer::new("objects", sources, context().clock)
}

fn names<S: Copy>(objects: &[(S, Arc<Object>)]) -> Vec<(S, String)> {
    let names = objects.iter().map(|(source, it)| (*source, name(it)));
    names.collect()
}

fn name(object: &Object) -> String {
    object.name().to_owned()
}

/// Returns a change as the tests compare it: its sign and the object's name.
fn show(change: &InformerChange) -> String {
    match change {
        InformerChange::Upserted(object) => format!("+{}", object.name()),
        InformerChange::Deleted(object) => format!("-{}", object.name()),
    }
}

/// Returns the next changes, at least as many as are asked for.
async fn next<'a, S: Copy + Send + 'a>(
    changes: &mut Changes<'a, S>,
    count: usize,
) -> Vec<(S, String)> {
    let mut all = Vec::new();
    while all.len() < count {
        let chunk = changes.next().await.expect("readable").expect("not ended");
        all.extend(chunk.iter().map(|(source, it)| (*source, show(it))));
    }
    all
}

fn own(all: &[(u8, &str)]) -> Vec<(u8, String)> {
    let all = all.iter().map(|(source, name)| (*source, (*name).into()));
    all.collect()
}

/// A store whose watches the test ends, or that cannot be read.
#[derive(Debug)]
struct Unsteady<'a> {
    store: &'a Store,
    /// Ends the watch that there is.
    end: Arc<Notify>,
    /// The next lists fail with these.
    refusals: Mutex<Vec<Error>>,
    /// Each watch waits for that many events, hands them out at once, and then does so.
    batch: Option<(usize, End)>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Never,
    Ends,
    Fails,
}

impl<'a> Unsteady<'a> {
    fn new(store: &'a Store) -> Self {
        Self {
            store,
            end: Arc::default(),
            refusals: Mutex::default(),
            batch: None,
        }
    }

    fn batched(store: &'a Store, size: usize, end: End) -> Self {
        Self {
            batch: Some((size, end)),
            ..Self::new(store)
        }
    }
}

fn not_ready() -> StorageError {
    StorageError::NotReady {
        reason: None,
        retry_after_seconds: 1,
    }
}

#[async_trait]
impl ListWatch for Unsteady<'_> {
    async fn list_all(&self) -> Result<List, Error> {
        let refusal = self.refusals.lock().expect("sound").pop();
        match refusal {
            Some(refusal) => Err(refusal),
            None => self.store.list_all().await,
        }
    }

    async fn watch_from(&self, revision: u64) -> Result<WatchStream, Error> {
        let watch = self.store.watch_from(revision).await?;
        let Some((size, end)) = self.batch else {
            let end = Arc::clone(&self.end);
            let end = async move { end.notified().await };
            return Ok(WatchStream::new(watch.take_until(end.boxed())));
        };
        let batch = watch.take(size).collect::<Vec<_>>().into_stream();
        let batch = batch.flat_map(stream::iter);
        Ok(match end {
            End::Never => WatchStream::new(batch.chain(stream::pending())),
            End::Ends => WatchStream::new(batch),
            End::Fails => {
                let failure = future::ready(Err(not_ready()));
                WatchStream::new(batch.chain(stream::once(failure)))
            }
        })
    }
}

/// An [`Informed`] that records its calls.
struct Recorder(UnboundedSender<String>);

fn recorder() -> (Recorder, UnboundedReceiver<String>) {
    let (sender, receiver) = unbounded_channel();
    (Recorder(sender), receiver)
}

impl Recorder {
    fn record(&self, call: String) {
        self.0.send(call).expect("the test receives");
    }
}

impl Handler<u8> for Recorder {
    fn replace(&mut self, objects: Vec<(u8, Arc<Object>)>) {
        let names = objects.iter().map(|(_, it)| name(it));
        self.record(format!("={}", names.collect::<Vec<_>>().join(",")));
    }

    fn apply(&mut self, _source: u8, change: InformerChange) {
        self.record(show(&change));
    }

    fn publish(&mut self) {
        self.record("published".to_owned());
    }
}

async fn expect(calls: &mut UnboundedReceiver<String>, expected: &[&str]) {
    for expected in expected {
        assert_eq!(calls.recv().await.as_deref(), Some(*expected));
    }
}

/// Runs an informer of one store until the script has ended.
async fn run(store: &dyn ListWatch, mut recorder: Recorder, script: impl Future<Output = ()>) {
    let informer = informer([(0, store)]);
    tokio::select! {
        () = informer.run(&mut recorder) => panic!("it does not end"),
        () = script => {}
    }
}

#[tokio::test]
async fn objects_are_listed_and_then_followed() {
    let one = fixture();
    create(&one, "a").await;
    create(&one, "b").await;
    let mut listed = informer([(1, &one.store as _)]).list().await.expect("read");
    assert_eq!(names(&listed.objects), own(&[(1, "a"), (1, "b")]));
    create(&one, "c").await;
    delete(&one, "a").await;
    let followed = next(&mut listed.changes, 2).await;
    assert_eq!(followed, own(&[(1, "+c"), (1, "-a")]));
}

#[tokio::test]
async fn several_stores_come_in_one_stream() {
    let (one, two) = (fixture(), fixture());
    create(&one, "a").await;
    create(&two, "b").await;
    let sources = [(1, &one.store as _), (2, &two.store as _)];
    let mut listed = informer(sources).list().await.expect("read");
    assert_eq!(names(&listed.objects), own(&[(1, "a"), (2, "b")]));
    delete(&one, "a").await;
    delete(&two, "b").await;
    let mut followed = next(&mut listed.changes, 2).await;
    followed.sort();
    assert_eq!(followed, own(&[(1, "-a"), (2, "-b")]));
}

#[tokio::test]
async fn corrupt_objects_are_reported_and_left_out() {
    let one = fixture();
    create(&one, "a").await;
    one.storage.put_corrupt("/configmaps/ns/b").await;
    create(&one, "c").await;
    let mut listed = informer([(1, &one.store as _)]).list().await.expect("read");
    assert_eq!(names(&listed.objects), own(&[(1, "a"), (1, "c")]));
    let [(1, key)] = &listed.corrupt[..] else {
        panic!("one is corrupt: {:?}", listed.corrupt);
    };
    assert!(key.ends_with("/configmaps/ns/b"), "{key}");
    create(&one, "d").await;
    assert_eq!(next(&mut listed.changes, 1).await, own(&[(1, "+d")]));
}

#[tokio::test]
async fn changes_that_are_there_come_in_chunks() {
    let one = fixture();
    let count = CHANGES_MAX + 2;
    let batched = Unsteady::batched(&one.store, count, End::Never);
    let mut listed = informer([(1, &batched as _)]).list().await.expect("read");
    for number in 0..count {
        create(&one, &format!("a{number}")).await;
    }
    for expected in [CHANGES_MAX, 2] {
        let chunk = listed.changes.next().await.expect("readable");
        assert_eq!(chunk.expect("not ended").len(), expected);
    }
}

#[tokio::test]
async fn a_store_that_is_added_is_followed_from_then_on() {
    let (one, two) = (fixture(), fixture());
    create(&two, "before").await;
    let mut listed = informer([(1, &one.store as _)]).list().await.expect("read");
    listed.changes.add(2, &two.store).await.expect("watched");
    create(&two, "after").await;
    assert_eq!(next(&mut listed.changes, 1).await, own(&[(2, "+after")]));
    create(&one, "a").await;
    assert_eq!(next(&mut listed.changes, 1).await, own(&[(1, "+a")]));
}

#[tokio::test]
async fn a_dropped_wait_loses_no_change() {
    let one = fixture();
    let mut listed = informer([(1, &one.store as _)]).list().await.expect("read");
    assert!(listed.changes.next().now_or_never().is_none());
    create(&one, "a").await;
    // It may be there already, or only later: a wait that is dropped must not take it away.
    let first = listed.changes.next().now_or_never();
    let second = match first {
        Some(chunk) => chunk.expect("readable").expect("not ended"),
        None => listed
            .changes
            .next()
            .await
            .expect("readable")
            .expect("not ended"),
    };
    assert_eq!(show(&second[0].1), "+a");
}

#[tokio::test]
async fn changes_before_the_end_of_a_watch_are_handed_out_and_none_after_it() {
    let (one, two) = (fixture(), fixture());
    let ending = Unsteady::batched(&one.store, 1, End::Ends);
    let sources = [(1, &ending as _), (2, &two.store as _)];
    let mut listed = informer(sources).list().await.expect("read");
    create(&one, "a").await;
    assert_eq!(next(&mut listed.changes, 1).await, own(&[(1, "+a")]));
    create(&two, "b").await;
    for _ in 0..2 {
        let end = listed.changes.next().await.expect("ended, not failed");
        assert!(end.is_none(), "{end:?}");
    }
}

#[tokio::test]
async fn a_failed_watch_is_an_error_after_the_changes_before_it() {
    let one = fixture();
    let failing = Unsteady::batched(&one.store, 1, End::Fails);
    let mut listed = informer([(1, &failing as _)]).list().await.expect("read");
    create(&one, "a").await;
    assert_eq!(next(&mut listed.changes, 1).await, own(&[(1, "+a")]));
    let error = listed.changes.next().await.expect_err("failed");
    assert!(matches!(
        error,
        Error::Storage(StorageError::NotReady { .. })
    ));
    assert!(listed.changes.next().await.expect("told once").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_handler_publishes_after_the_list_and_after_each_chunk() {
    let one = fixture();
    create(&one, "a").await;
    let batched = Unsteady::batched(&one.store, 2, End::Never);
    let (recorder, mut calls) = recorder();
    run(&batched, recorder, async {
        expect(&mut calls, &["=a", "published"]).await;
        create(&one, "b").await;
        delete(&one, "a").await;
        expect(&mut calls, &["+b", "-a", "published"]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn everything_is_listed_again_after_a_watch_has_ended() {
    let one = fixture();
    create(&one, "a").await;
    let unsteady = Unsteady::new(&one.store);
    let (recorder, mut calls) = recorder();
    run(&unsteady, recorder, async {
        expect(&mut calls, &["=a", "published"]).await;
        unsteady.end.notify_one();
        expect(&mut calls, &["=a", "published"]).await;
        create(&one, "b").await;
        expect(&mut calls, &["+b", "published"]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_while_the_store_cannot_be_read() {
    let one = fixture();
    create(&one, "a").await;
    let unsteady = Unsteady::new(&one.store);
    let (recorder, mut calls) = recorder();
    run(&unsteady, recorder, async {
        expect(&mut calls, &["=a", "published"]).await;
        let refusals = vec![
            Error::Storage(not_ready()),
            Error::Internal("broken".to_owned()),
        ];
        *unsteady.refusals.lock().expect("sound") = refusals;
        unsteady.end.notify_one();
        expect(&mut calls, &["=a", "published"]).await;
        assert!(unsteady.refusals.lock().expect("sound").is_empty());
    })
    .await;
}
