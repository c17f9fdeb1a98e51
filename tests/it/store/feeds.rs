//! The feed of all changes, the compactor, and the health check of the store.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::{BackendError, RangeRequest};
use ringwatch::storage::etcd3::{Changes, Compactor, Health};
use ringwatch::storage::{ChangeBatch, ChangeKind, ChangeSource as _, ChangeStream, StorageError};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::{Fixture, over_backends};

over_backends!(
    pages_are_pinned_and_keys_are_without_the_prefix,
    all_types_are_followed_in_one_order,
    an_old_start_of_the_feed_is_expired,
    history_reaches_back_to_where_it_is_compacted,
    a_key_is_known_by_the_revision_that_wrote_it,
    history_is_compacted_in_turns,
    a_living_backend_is_healthy,
);

fn changes(fixture: &Fixture) -> Changes {
    Changes::new(Arc::clone(&fixture.backend), "/registry")
}

async fn next(stream: &mut ChangeStream) -> Result<ChangeBatch, StorageError> {
    let next = tokio::time::timeout(DEADLINE, stream.next()).await;
    next.expect("a batch in time").expect("a batch")
}

async fn pages_are_pinned_and_keys_are_without_the_prefix(fixture: Fixture) {
    for name in ["a", "b", "c"] {
        fixture.create(name, "x").await;
    }
    let changes = changes(&fixture);
    let first = changes
        .page("/configmaps/", None, 0, 2)
        .await
        .expect("a page");
    let keys: Vec<&str> = first.items.iter().map(|item| &*item.key).collect();
    assert_eq!(keys, ["/configmaps/default/a", "/configmaps/default/b"]);
    assert!(first.more);
    let later = fixture.create("d", "x").await.revision();
    assert_eq!(changes.current_revision().await.expect("a revision"), later);
    let after = Some(keys[1]);
    let second = changes.page("/configmaps/", after, first.revision, 2).await;
    let second = second.expect("a page");
    assert_eq!((second.revision, second.more), (first.revision, false));
    assert_eq!(second.items.len(), 1);
    assert_eq!(second.items[0].key, "/configmaps/default/c");
    assert_eq!(second.items[0].revision, first.revision);
    let everything = changes.page("/", None, 0, 0).await.expect("a page");
    assert_eq!(everything.items.len(), 4);
}

async fn all_types_are_followed_in_one_order(fixture: Fixture) {
    let start = fixture.create("a", "x").await;
    let changes = changes(&fixture);
    let mut stream = changes.follow(start.revision()).await.expect("a stream");
    let secret = fixture.write_raw("/registry/secrets/default/s", "{}").await;
    let updated = fixture.label("a", "y").await;
    let deleted = fixture.delete("a").await.revision();
    fixture.write_raw("/elsewhere", "{}").await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let batch = next(&mut stream).await.expect("changes");
        if let Some(last) = batch.changes.last() {
            assert_eq!(batch.revision, last.revision);
        }
        seen.extend(batch.changes);
    }
    let received: Vec<(&str, u64)> = seen
        .iter()
        .map(|change| (&*change.key, change.revision))
        .collect();
    assert_eq!(
        received,
        [
            ("/secrets/default/s", secret),
            ("/configmaps/default/a", updated.revision()),
            ("/configmaps/default/a", deleted),
        ]
    );
    assert!(matches!(
        &seen[0].kind,
        ChangeKind::Put { created: true, .. }
    ));
    assert!(
        matches!(&seen[1].kind, ChangeKind::Put { created: false, value }
        if value == updated.stored())
    );
    assert!(matches!(&seen[2].kind, ChangeKind::Delete));
    changes.request_progress().await.expect("a request");
    let progress = next(&mut stream).await.expect("progress");
    assert!(progress.changes.is_empty());
    assert_eq!(progress.revision, deleted + 1);
}

async fn an_old_start_of_the_feed_is_expired(fixture: Fixture) {
    let first = fixture.create("a", "x").await.revision();
    fixture.label("a", "y").await;
    let last = fixture.label("a", "z").await.revision();
    fixture.backend.compact(last).await.expect("a compaction");
    let changes = changes(&fixture);
    let mut stream = changes.follow(first).await.expect("a stream");
    let error = next(&mut stream).await.expect_err("too old");
    assert!(matches!(error, StorageError::WatchExpired), "{error:?}");
    assert!(stream.next().await.is_none());
    let page = changes.page("/configmaps/", None, first, 1).await;
    assert!(matches!(page, Err(StorageError::ListExpired)));
}

async fn history_reaches_back_to_where_it_is_compacted(fixture: Fixture) {
    let changes = changes(&fixture);
    assert_eq!(changes.oldest_revision().await.expect("an answer"), 1);
    let first = fixture.create("a", "x").await.revision();
    assert_eq!(changes.oldest_revision().await.expect("an answer"), 1);
    let second = fixture.label("a", "y").await.revision();
    let third = fixture.label("a", "z").await.revision();
    fixture.backend.compact(second).await.expect("a compaction");
    let oldest = changes.oldest_revision().await.expect("an answer");
    assert_eq!(oldest, second);
    let page = changes.page("/configmaps/", None, oldest, 1).await;
    assert_eq!(page.expect("the oldest state").items[0].revision, second);
    let mut stream = changes.follow(oldest).await.expect("a stream");
    assert_eq!(next(&mut stream).await.expect("a change").revision, third);
    let older = changes.page("/configmaps/", None, first, 1).await;
    assert!(matches!(older, Err(StorageError::ListExpired)));
}

async fn a_key_is_known_by_the_revision_that_wrote_it(fixture: Fixture) {
    let first = fixture.create("a", "x").await.revision();
    let second = fixture.label("a", "y").await.revision();
    let third = fixture.create("b", "x").await.revision();
    let changes = changes(&fixture);
    let key = "/configmaps/default/a";
    for (revision, written) in [(first, true), (second, true), (third, false)] {
        let answer = changes.has_written(key, revision).await;
        assert_eq!(answer.expect("an answer"), written, "{revision}");
    }
    let future = changes.has_written(key, third + 10).await;
    assert!(!future.expect("an answer"), "the store is not there yet");
    fixture.backend.compact(third).await.expect("a compaction");
    let unknown = changes.has_written(key, first).await;
    assert!(
        unknown.expect("an answer"),
        "nobody can say that it has not"
    );
}

async fn history_is_compacted_in_turns(fixture: Fixture) {
    let first = fixture.create("a", "x").await.revision();
    fixture.label("a", "y").await;
    let interval = Some(Duration::from_millis(200));
    let server = |interval| Compactor::new(Arc::clone(&fixture.backend), interval, Clock::real());
    let (one, two, onlooker) = (server(interval), server(interval), server(None));
    let mut known = [&one, &two, &onlooker].map(Compactor::compact_revision);
    let old = RangeRequest {
        revision: first,
        ..RangeRequest::key("/registry/configmaps/default/a")
    };
    let compacted = async {
        for known in &mut known {
            let known = known.wait_for(|revision| *revision > first).await;
            known.expect("a compactor at work");
        }
        // The key is written just before the compaction is done.
        eventually(DEADLINE, "old history is gone", async || {
            fixture.backend.range(old.clone()).await.is_err()
        })
        .await;
    };
    tokio::select! {
        outcome = tokio::time::timeout(DEADLINE, compacted) => outcome.expect("a compaction"),
        () = one.run(std::future::pending()) => panic!("it ended"),
        () = two.run(std::future::pending()) => panic!("it ended"),
        () = onlooker.run(std::future::pending()) => panic!("it ended"),
    }
    let gone = fixture.backend.range(old).await.expect_err("old history");
    assert!(matches!(gone, BackendError::Compacted { .. }), "{gone:?}");
}

async fn a_living_backend_is_healthy(fixture: Fixture) {
    let health = Health::new(Arc::clone(&fixture.backend), "/registry", Clock::real());
    assert_eq!(health.check().await, Ok(()));
    assert_eq!(health.check().await, Ok(()));
}
