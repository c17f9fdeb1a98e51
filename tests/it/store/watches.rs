//! Watches straight from the backend.

use futures::StreamExt;
use ringwatch::meta::{LabelSelector, ResourceVersion};
use ringwatch::storage::{
    DeleteOptions, Interface as _, ListOptions, NoCheck, SelectionPredicate, StorageError,
    WatchStream,
};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::{ALL, Fixture, key, next, next_item, over_backends};

over_backends!(
    a_watch_from_zero_begins_with_the_state,
    a_watch_from_a_version_begins_after_it,
    a_watch_of_one_key_sees_no_other,
    selection_decides_what_is_told,
    initial_events_end_with_a_bookmark,
    initial_events_can_be_declined,
    a_state_of_the_future_is_refused_in_band,
    a_future_version_waits,
    a_compacted_version_is_refused_in_band,
    a_corrupt_value_ends_the_watch,
    deleting_a_corrupt_value_ends_the_watch,
    progress_comes_as_bookmarks,
    a_large_state_comes_in_pages,
);

fn from(version: u64) -> ListOptions {
    ListOptions {
        resource_version: Some(ResourceVersion(version)),
        recursive: true,
        ..ListOptions::default()
    }
}

async fn watch(fixture: &Fixture, options: ListOptions) -> WatchStream {
    let watch = fixture.store.watch(ALL, options).await;
    watch.expect("a watch that begins")
}

/// Checks that the watch ends with an error and nothing else, and returns it.
async fn last(watch: &mut WatchStream) -> StorageError {
    let error = next_item(watch).await.expect_err("an error");
    assert!(watch.next().await.is_none(), "an error is the last item");
    error
}

async fn a_watch_from_zero_begins_with_the_state(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let b = fixture.create("b", "x").await.revision();
    let a2 = fixture.label("a", "y").await.revision();
    for options in [
        from(0),
        ListOptions {
            resource_version: None,
            ..from(0)
        },
    ] {
        // What comes after the call is not part of the state, though nobody has polled yet.
        let mut watch = watch(&fixture, options).await;
        let c = fixture.create("c", "x").await.revision();
        let gone = fixture.delete("c").await.revision();
        assert_eq!(next(&mut watch).await, format!("ADDED a y {a2}"));
        assert_eq!(next(&mut watch).await, format!("ADDED b x {b}"));
        assert_eq!(next(&mut watch).await, format!("ADDED c x {c}"));
        assert_eq!(next(&mut watch).await, format!("DELETED c x {gone}"));
    }
    assert!(a < b);
}

async fn a_watch_from_a_version_begins_after_it(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let b = fixture.create("b", "x").await.revision();
    let a2 = fixture.label("a", "y").await.revision();
    let a3 = fixture.delete("a").await.revision();
    let mut watch = watch(&fixture, from(a)).await;
    assert_eq!(next(&mut watch).await, format!("ADDED b x {b}"));
    assert_eq!(next(&mut watch).await, format!("MODIFIED a y {a2}"));
    assert_eq!(next(&mut watch).await, format!("DELETED a y {a3}"));
    let a4 = fixture.create("a", "z").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED a z {a4}"));
}

async fn a_watch_of_one_key_sees_no_other(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let options = ListOptions {
        recursive: false,
        ..from(0)
    };
    let watch = fixture.store.watch(&key("a"), options).await;
    let mut watch = watch.expect("a watch");
    fixture.create("ab", "x").await;
    let a2 = fixture.label("a", "y").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED a x {a}"));
    assert_eq!(next(&mut watch).await, format!("MODIFIED a y {a2}"));
}

async fn selection_decides_what_is_told(fixture: Fixture) {
    let start = fixture.create("a", "y").await.revision();
    let options = ListOptions {
        predicate: SelectionPredicate {
            label: LabelSelector::parse("app=x").expect("a selector"),
            ..SelectionPredicate::default()
        },
        ..from(start)
    };
    let mut watch = watch(&fixture, options).await;
    fixture.label("a", "z").await;
    let enters = fixture.label("a", "x").await.revision();
    let leaves = fixture.label("a", "y").await.revision();
    fixture.delete("a").await;
    let b = fixture.create("b", "x").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED a x {enters}"));
    assert_eq!(next(&mut watch).await, format!("DELETED a x {leaves}"));
    assert_eq!(next(&mut watch).await, format!("ADDED b x {b}"));
}

async fn initial_events_end_with_a_bookmark(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let elsewhere = fixture.write_raw("/registry/secrets/default/s", "{}").await;
    let initial = |bookmarks, version| ListOptions {
        resource_version: version,
        send_initial_events: Some(true),
        predicate: SelectionPredicate {
            allow_watch_bookmarks: bookmarks,
            ..SelectionPredicate::default()
        },
        ..from(0)
    };
    for version in [None, Some(ResourceVersion(0)), Some(ResourceVersion(a))] {
        let mut watch = watch(&fixture, initial(true, version)).await;
        assert_eq!(next(&mut watch).await, format!("ADDED a x {a}"));
        assert_eq!(next(&mut watch).await, format!("BOOKMARK {elsewhere} true"));
    }
    let mut silent = watch(&fixture, initial(false, None)).await;
    assert_eq!(next(&mut silent).await, format!("ADDED a x {a}"));
    let b = fixture.create("b", "x").await.revision();
    assert_eq!(next(&mut silent).await, format!("ADDED b x {b}"));
}

async fn initial_events_can_be_declined(fixture: Fixture) {
    fixture.create("a", "x").await;
    for version in [None, Some(ResourceVersion(0))] {
        let options = ListOptions {
            resource_version: version,
            send_initial_events: Some(false),
            ..from(0)
        };
        let mut watch = watch(&fixture, options).await;
        let b = fixture.create("b", "x").await.revision();
        assert_eq!(next(&mut watch).await, format!("ADDED b x {b}"));
        fixture.delete("b").await;
    }
}

async fn a_state_of_the_future_is_refused_in_band(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let options = ListOptions {
        send_initial_events: Some(true),
        ..from(a + 7)
    };
    let mut watch = watch(&fixture, options).await;
    let error = last(&mut watch).await;
    assert!(
        matches!(error, StorageError::TooLargeResourceVersion {
            requested, current, retry_after_seconds: 1..=3,
        } if (requested, current) == (a + 7, a)),
        "{error:?}"
    );
}

async fn a_future_version_waits(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let mut watch = watch(&fixture, from(a + 1)).await;
    fixture.create("b", "x").await;
    let c = fixture.create("c", "x").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED c x {c}"));
}

async fn a_compacted_version_is_refused_in_band(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    fixture.label("a", "y").await;
    let last_revision = fixture.label("a", "z").await.revision();
    fixture
        .backend
        .compact(last_revision)
        .await
        .expect("a compaction");
    let mut watch_old = watch(&fixture, from(a)).await;
    assert!(matches!(
        last(&mut watch_old).await,
        StorageError::WatchExpired
    ));
    let mut watch_new = watch(&fixture, from(0)).await;
    assert_eq!(
        next(&mut watch_new).await,
        format!("ADDED a z {last_revision}")
    );
}

async fn a_corrupt_value_ends_the_watch(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let mut following = watch(&fixture, from(a)).await;
    let b = fixture.create("b", "x").await.revision();
    fixture
        .write_raw("/registry/configmaps/default/bad", "garbage")
        .await;
    fixture.create("c", "x").await;
    assert_eq!(next(&mut following).await, format!("ADDED b x {b}"));
    assert!(matches!(
        last(&mut following).await,
        StorageError::Corrupt { .. }
    ));
    let mut initial = watch(&fixture, from(0)).await;
    assert_eq!(next(&mut initial).await, format!("ADDED a x {a}"));
    assert_eq!(next(&mut initial).await, format!("ADDED b x {b}"));
    assert!(matches!(
        last(&mut initial).await,
        StorageError::Corrupt { .. }
    ));
}

async fn deleting_a_corrupt_value_ends_the_watch(fixture: Fixture) {
    let bad = fixture
        .write_raw("/registry/configmaps/default/bad", "garbage")
        .await;
    let mut watch = watch(&fixture, from(bad)).await;
    let options = DeleteOptions {
        expect_decode_error: true,
        ..DeleteOptions::default()
    };
    let deleted = fixture
        .store
        .delete(&key("bad"), options, &mut NoCheck)
        .await;
    deleted.expect("a corrupt value");
    assert!(matches!(
        last(&mut watch).await,
        StorageError::Corrupt { .. }
    ));
}

async fn progress_comes_as_bookmarks(fixture: Fixture) {
    let a = fixture.create("a", "x").await.revision();
    let options = ListOptions {
        progress_notify: true,
        ..from(0)
    };
    let mut watch = watch(&fixture, options).await;
    assert_eq!(next(&mut watch).await, format!("ADDED a x {a}"));
    let elsewhere = fixture.write_raw("/registry/secrets/default/s", "{}").await;
    // The watch follows only when polled, so the request has to meet it: request progress until a response comes.
    let pause = std::time::Duration::from_millis(100);
    let bookmark = eventually(DEADLINE, "progress", async || {
        let requested = fixture.store.request_watch_progress().await;
        requested.expect("a request");
        tokio::time::timeout(pause, next(&mut watch)).await
    });
    let bookmark = bookmark.await;
    assert_eq!(bookmark, format!("BOOKMARK {elsewhere} false"));
    let b = fixture.create("b", "x").await.revision();
    let mut item = next(&mut watch).await;
    while item == bookmark {
        item = next(&mut watch).await;
    }
    assert_eq!(item, format!("ADDED b x {b}"));
}

async fn a_large_state_comes_in_pages(fixture: Fixture) {
    let value = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n"}}"#;
    let writes = (0..10_050).map(|number| {
        let full = format!("/registry/configmaps/default/{number:05}");
        let fixture = &fixture;
        async move { fixture.write_raw(&full, value).await }
    });
    let revisions: Vec<u64> = futures::stream::iter(writes).buffered(64).collect().await;
    let mut watch = watch(&fixture, from(0)).await;
    fixture
        .write_raw("/registry/configmaps/default/00000a", value)
        .await;
    for revision in &revisions {
        assert_eq!(next(&mut watch).await, format!("ADDED n  {revision}"));
    }
    // The one that came meanwhile is delivered once, after the state.
    assert!(next(&mut watch).await.starts_with("ADDED n  "));
}

#[tokio::test]
async fn a_watch_outlives_a_restart_of_etcd() {
    let name = "store::watches::a_watch_outlives_a_restart_of_etcd";
    let Some(mut fixture) = Fixture::etcd(name).await else {
        return;
    };
    let a = fixture.create("a", "x").await.revision();
    let mut watch = watch(&fixture, from(0)).await;
    assert_eq!(next(&mut watch).await, format!("ADDED a x {a}"));
    let b = fixture.create("b", "x").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED b x {b}"));
    let mut etcd = fixture.etcd.take().expect("an etcd");
    etcd.restart();
    // A read finds the new connection; a write that meets the old one fails, as it must.
    let read = fixture.store.get(&key("a"), Default::default()).await;
    assert_eq!(read.expect("the object").revision(), a);
    let c = fixture.create("c", "x").await.revision();
    assert_eq!(next(&mut watch).await, format!("ADDED c x {c}"));
}
