//! Gets and lists: who answers, and how fresh the answer is.

use super::scripted::{STORE_OBJECTS, STORE_REVISION};
use super::*;
use crate::meta::VersionMatch;
use crate::storage::{CORRUPT_KEYS_MAX, ContinueToken, GetOptions};

fn limited(limit: u64, mut options: ListOptions) -> ListOptions {
    options.predicate.limit = limit;
    options
}

#[tokio::test(start_paused = true)]
async fn a_list_without_version_waits_for_the_newest_write() {
    let world = World::new(WindowLimits::default()).await;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let any = world.list(since(0)).await.expect("as it is");
    assert_eq!(listed(&any), "1: ");
    let release = async {
        world.settle().await;
        world.script.release();
    };
    let (list, ()) = tokio::join!(world.list(newest()), release);
    assert_eq!(listed(&list.expect("fresh")), "2: a");
    assert_eq!(*world.store.lists.lock().expect("sound"), 0);
}

/// Writes of other types and progress notices take a quiet type along.
#[tokio::test(start_paused = true)]
async fn k91073_a_quiet_type_is_fresh() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/services/d/b", "x");
    let list = world.list(since(3)).await.expect("no wait");
    assert_eq!(listed(&list), "3: a");
    // A revision that no event brings.
    world.script.state().revision = 9;
    let begun = world.clock.now();
    let list = world.list(newest()).await.expect("a progress notice");
    assert_eq!(listed(&list), "9: a");
    let waited = world.clock.now() - begun;
    assert!(
        waited < Duration::from_millis(10),
        "{waited:?}: not at once"
    );
    let requests = world.script.state().progress_requests;
    assert!((1..=2).contains(&requests), "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn consistent_reads_share_a_probe() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let before = world.script.state().probes;
    let lists = (0..50).map(|_| world.list(newest()));
    for list in futures::future::join_all(lists).await {
        assert_eq!(listed(&list.expect("fresh")), "2: a");
    }
    let probes = world.script.state().probes - before;
    assert!((1..=2).contains(&probes), "{probes} probes for 50 lists");
}

/// Readers that come while the store is being asked are asked for together, a moment later.
#[tokio::test(start_paused = true)]
async fn readers_of_a_moment_share_a_probe() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().probe_time = Duration::from_millis(100);
    let before = world.script.state().probes;
    let lists = (0..10).map(async |turns| {
        for _ in 0..10 * turns {
            tokio::task::yield_now().await;
        }
        world.list(newest()).await.expect("fresh")
    });
    assert_eq!(futures::future::join_all(lists).await.len(), 10);
    assert_eq!(world.script.state().probes - before, 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_cache_does_not_know_is_the_stores() {
    let world = World::new(WindowLimits::default()).await;
    let delegator = &world.delegator;
    let stats = delegator.stats().await.expect("the store's");
    assert_eq!(stats.object_count, STORE_OBJECTS);
    let newest = delegator.current_resource_version().await;
    assert_eq!(newest.expect("the store's").0, STORE_REVISION);
    assert!(delegator.request_watch_progress().await.is_err());
    *world.store.compacted.lock().expect("sound") = 99;
    assert_eq!(delegator.compact_revision(), 99);
    assert!(std::ptr::eq(delegator.versioner(), world.store.versioner()));
}

#[tokio::test(start_paused = true)]
async fn a_consistent_read_falls_back_to_the_store() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().trusted = false;
    let list = world.list(newest()).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    world.script.state().trusted = true;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let begun = world.clock.now();
    let list = world.list(newest()).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    assert_eq!((world.clock.now() - begun).as_secs(), 3);
}

/// A notice that overtakes events says nothing, so it is not asked for.
#[tokio::test(start_paused = true)]
async fn progress_that_is_not_trusted_is_not_requested() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().trusted = false;
    let before = world.script.state().progress_requests;
    world.list(since(99)).await.expect_err("too new");
    assert_eq!(world.script.state().progress_requests, before);
}

/// The revision of a read may be that of a change which the source does not have, so the store is soon asked.
#[tokio::test(start_paused = true)]
async fn a_revision_that_the_feed_may_not_reach_is_the_stores() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().reaches_newest = false;
    let begun = world.clock.now();
    let list = world.list(since(99)).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    assert!((world.clock.now() - begun).as_secs() < 1);
}

/// The state is the store's, and an event up to its revision that comes later is not told again.
#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_the_stores_state_if_the_feed_may_not_reach_it() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().reaches_newest = false;
    for version in [None, Some(STORE_REVISION)] {
        let watch = world.delegator.watch("/pods/", streamed(version)).await;
        let mut watch = watch.expect("ready");
        let first = watch.next().await.expect("a watch").expect("no error");
        let WatchEvent::Bookmark {
            revision,
            initial_events_end: true,
        } = first
        else {
            panic!("the end of the state, not {first:?}");
        };
        assert_eq!(revision, STORE_REVISION, "at {version:?}");
        let before = world.script.put("/pods/d/a", "x");
        assert!(before <= STORE_REVISION);
        if version.is_none() {
            continue;
        }
        world.script.state().revision = STORE_REVISION;
        let after = world.script.put("/pods/d/b", "x");
        let event = watch.next().await.expect("a watch").expect("no error");
        assert_eq!((event.revision(), after), (after, STORE_REVISION + 1));
        assert!(matches!(event, WatchEvent::Added(_)), "{event:?}");
    }
    assert_eq!(*world.store.lists.lock().expect("sound"), 2);
}

/// A part of the state must not pass for all of it.
#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_all_of_the_stores_state_whatever_page_is_asked_for() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().reaches_newest = false;
    let mut options = streamed(None);
    options.predicate.limit = 1;
    let watch = world.delegator.watch("/pods/", options).await;
    drop(watch.expect("ready"));
    assert_eq!(*world.store.lists.lock().expect("sound"), 1);
    assert_eq!(world.store.selection.lock().expect("sound").limit, 0);
}

/// The answer of the store is as old as the request, and the feed has gone on meanwhile: nothing was put back.
#[tokio::test(start_paused = true)]
async fn a_write_during_a_probe_is_not_taken_for_a_store_that_was_put_back() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().probe_time = Duration::from_millis(10);
    let writing = async {
        world.clock.sleep(Duration::from_millis(5)).await;
        world.script.put("/pods/d/a", "x");
    };
    let (list, ()) = tokio::join!(world.list(newest()), writing);
    assert_eq!(listed(&list.expect("from memory")), "2: a");
    world.pods.check_ready().expect("the same history");
}

/// The cached state is of another history than the restored store, and nobody gets it any more.
#[tokio::test(start_paused = true)]
async fn a_store_put_back_to_an_older_state_answers_itself() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    world.script.state().revision = 1;
    let list = world.list(newest()).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    let after_newest = ListOptions {
        send_initial_events: Some(false),
        ..newest()
    };
    let watch = world.pods.watch("/pods/", after_newest).await.map(drop);
    let list = world.list(since(0)).await.map(drop);
    for outcome in [watch, list] {
        let refused = outcome.expect_err("of the former history").to_string();
        assert!(
            refused.contains("restored from an older state"),
            "{refused}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_reached_is_refused_after_three_seconds() {
    let world = World::new(WindowLimits::default()).await;
    let begun = world.clock.now();
    let exact = ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(99)
    };
    for options in [since(99), exact] {
        let error = world.list(options).await.expect_err("too new");
        let StorageError::TooLargeResourceVersion {
            requested: 99,
            current: 1,
            retry_after_seconds: 1,
        } = error
        else {
            panic!("{error}");
        };
    }
    let options = GetOptions {
        resource_version: Some(ResourceVersion(99)),
    };
    let error = world.delegator.get("/pods/d/a", options).await;
    assert!(error.is_err());
    assert_eq!((world.clock.now() - begun).as_secs(), 9);
    assert!(world.script.state().progress_requests > 10);
}

#[tokio::test(start_paused = true)]
async fn a_get_is_the_stores_unless_it_names_a_version() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let get = |version: Option<u64>, key: &'static str| {
        let options = GetOptions {
            resource_version: version.map(ResourceVersion),
        };
        world.delegator.get(key, options)
    };
    let object = get(Some(2), "/pods/d/a").await.expect("cached");
    assert_eq!((object.name(), object.revision()), ("a", 2));
    let object = get(Some(0), "/pods/d/a").await.expect("cached");
    assert_eq!(object.revision(), 2);
    let error = get(Some(0), "/pods/d/b").await.expect_err("missing");
    assert!(matches!(
        error,
        StorageError::KeyNotFound { revision: 2, .. }
    ));
    let error = get(None, "/pods/d/a").await.expect_err("the store's");
    assert!(matches!(error, StorageError::Corrupt { .. }));
}

/// Pages are of one revision, however much is written between them.
#[tokio::test(start_paused = true)]
async fn k123676_pages_are_one_snapshot() {
    let world = World::new(WindowLimits::default()).await;
    for name in ["a", "b", "c", "d", "e"] {
        world.script.put(&format!("/pods/n/{name}"), "x");
    }
    let first = world.list(limited(2, newest())).await.expect("fresh");
    assert_eq!(listed(&first), "6: a b ...");
    assert_eq!(first.remaining_item_count, Some(3));
    world.script.delete("/pods/n/c");
    world.script.put("/pods/n/bb", "x");
    world.settle().await;
    let mut options = limited(2, newest());
    options.predicate.continue_token = first.continue_token.expect("more");
    let second = world.list(options.clone()).await.expect("from memory");
    assert_eq!(listed(&second), "6: c d ...");
    options.predicate.continue_token = second.continue_token.expect("more");
    let last = world.list(options).await.expect("from memory");
    assert_eq!(listed(&last), "6: e");
    let list = world.list(newest()).await.expect("fresh");
    assert_eq!(listed(&list), "8: a b bb d e");
    let selected = labelled("y", limited(2, newest()));
    let list = world.list(selected).await.expect("fresh");
    assert_eq!(
        (listed(&list), list.remaining_item_count),
        ("8: ".to_owned(), None)
    );
    assert_eq!(*world.store.lists.lock().expect("sound"), 0);
}

#[tokio::test(start_paused = true)]
async fn exact_lists_come_from_the_window_and_older_ones_from_the_store() {
    let limits = WindowLimits {
        events_max: 100,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    for number in 0..200 {
        world.script.put(&format!("/pods/d/{number:03}"), "x");
    }
    world.settle().await;
    let exact = |revision| ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(revision)
    };
    for (revision, count) in [(201, 200), (150, 149), (101, 100)] {
        let list = world.list(exact(revision)).await.expect("from memory");
        assert_eq!((list.revision, list.items.len()), (revision, count));
    }
    // Events go by segments of six.
    let list = world.list(exact(95)).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    let list = world.list(limited(2, since(150))).await.expect("legacy");
    assert_eq!(listed(&list), "150: 000 001 ...");
    let list = world.list(limited(2, since(0))).await.expect("as it is");
    assert_eq!(list.items.len(), 200, "the limit is ignored");
    let list = world.list(limited(
        150,
        ListOptions {
            version_match: Some(VersionMatch::NotOlderThan),
            ..since(150)
        },
    ));
    assert_eq!(list.await.expect("newer").items.len(), 150);
}

/// Clients must not read on what the window still has of revisions that are compacted: their lists would never expire.
#[tokio::test(start_paused = true)]
async fn lists_of_compacted_revisions_are_the_stores() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c", "d"]);
    world.settle().await;
    *world.store.compacted.lock().expect("sound") = 4;
    for (revision, answered) in [(2, STORE_REVISION), (3, STORE_REVISION), (4, 4), (5, 5)] {
        let exact = ListOptions {
            version_match: Some(VersionMatch::Exact),
            ..since(revision)
        };
        let list = world.list(exact).await.expect("a list");
        assert_eq!(list.revision, answered, "a list of {revision}");
    }
}

/// The snapshot of a quiet type does not expire.
#[tokio::test(start_paused = true)]
async fn the_newest_snapshot_of_a_quiet_type_stays() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..300 {
        world.script.put(&format!("/pods/d/{number}"), "x");
    }
    world.clock.sleep(Duration::from_secs(3600)).await;
    let exact = |revision| ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(revision)
    };
    let list = world.list(exact(301)).await.expect("from memory");
    assert_eq!(list.items.len(), 300);
    // Events go by segments, of 16, 32 and 64 here.
    let list = world.list(exact(100)).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    let mut watch = world.watch(since(250)).await;
    assert_eq!(next_item(&mut watch).await, "+249@251");
}

#[tokio::test(start_paused = true)]
async fn a_single_key_is_listed_alone() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/ab", "x");
    let single = |options: ListOptions| ListOptions {
        recursive: false,
        ..options
    };
    let list = |options| world.delegator.get_list("/pods/d/a", options);
    let found = list(single(newest())).await.expect("fresh");
    assert_eq!(listed(&found), "3: a");
    let found = list(single(labelled("y", newest()))).await.expect("fresh");
    assert_eq!(listed(&found), "3: ");
    let found = list(single(limited(1, since(2))))
        .await
        .expect("the store's");
    assert_eq!(found.revision, STORE_REVISION);
}

/// The store may have answered the page before, when it was ahead of the cache.
#[tokio::test(start_paused = true)]
async fn a_list_that_the_store_began_is_continued_by_the_store() {
    let world = World::new(WindowLimits::default()).await;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let first = world.list(limited(2, newest())).await.expect("the store's");
    assert_eq!(first.revision, STORE_REVISION);
    let token = ContinueToken {
        start: "/pods/d/a\0".to_owned(),
        revision: Some(2),
    };
    let mut options = limited(2, newest());
    options.predicate.continue_token = token.encode("/pods/").expect("a token");
    let second = world.list(options.clone()).await.expect("the store's");
    assert_eq!(second.revision, STORE_REVISION);
    let begun = limited(2, since(2));
    let error = world.list(begun).await.expect_err("none began it");
    assert!(
        matches!(error, StorageError::TooLargeResourceVersion { .. }),
        "{error}"
    );
    world.script.release();
    let second = world.list(options).await.expect("from memory");
    assert_eq!(listed(&second), "2: ");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_says_so() {
    let script = Arc::new(Script::default());
    script.state().reachable = false;
    let world = World::of(Arc::clone(&script), WindowLimits::default());
    world.clock.sleep(Duration::from_secs(20)).await;
    let error = world.list(since(0)).await.expect_err("pending");
    let StorageError::NotReady {
        reason: Some(reason),
        retry_after_seconds: 3,
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(reason, "as configured");
    assert!(world.delegator.readiness_check().is_err());
    assert!(world.pods.watch("/pods/", since(0)).await.is_err());
    let page = world.list(limited(5, newest())).await.expect("the store's");
    assert_eq!(page.revision, STORE_REVISION);
    let selected = labelled("x", limited(5, newest()));
    assert!(world.list(selected).await.is_err());
    let selected_later = ListOptions {
        selects_later: true,
        ..limited(5, newest())
    };
    assert!(world.list(selected_later).await.is_err());
    let get = GetOptions {
        resource_version: Some(ResourceVersion(0)),
    };
    let error = world.delegator.get("/pods/d/a", get).await;
    assert!(matches!(error, Err(StorageError::Corrupt { .. })));
    script.state().reachable = true;
    world.pods.ready().await.expect("listed");
    assert!(world.list(since(0)).await.is_ok());
}

/// A value that cannot be read is the store's to explain; watches of its type go on.
#[tokio::test(start_paused = true)]
async fn an_unreadable_object_stops_neither_its_type_nor_its_watches() {
    let script = Arc::new(Script::default());
    script.put_raw("/pods/d/bad", "garbage".into());
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed all the same");
    let mut watch = world.watch(since(2)).await;
    world.script.put("/pods/d/a", "x");
    world.script.put_raw("/pods/d/a", "garbage".into());
    world.settle().await;
    let list = world.list(since(0)).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION);
    for key in ["/pods/d/a", "/pods/d/bad"] {
        let get = GetOptions {
            resource_version: Some(ResourceVersion(0)),
        };
        let error = world.delegator.get(key, get).await;
        assert!(matches!(error, Err(StorageError::Corrupt { .. })));
    }
    let mut with_state = world.watch(since(0)).await;
    let first = with_state.next().await.expect("an error");
    let Err(StorageError::Corrupt { keys }) = first else {
        panic!("a state that leaves something out: {first:?}");
    };
    let keys: Vec<_> = keys.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["/pods/d/a", "/pods/d/bad"]);
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/bad", "x");
    world.script.delete("/pods/d/bad");
    assert_eq!(next_items(&mut watch, 4).await, "+a@3 ~a@5 +bad@6 -bad@7");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "7: a");
    let exact = ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..since(4)
    };
    let list = world.list(exact).await.expect("the store's");
    assert_eq!(list.revision, STORE_REVISION, "unreadable at that revision");
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_if_what_cannot_be_read_lies_outside() {
    let script = Arc::new(Script::default());
    for number in 0..=CORRUPT_KEYS_MAX {
        script.put_raw(&format!("/pods/d/b{number:03}"), "garbage".into());
    }
    script.put("/pods/d/a", "x");
    script.put("/pods/d/z", "x");
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed all the same");
    let first = async |key: &str, recursive| {
        let options = ListOptions {
            recursive,
            ..since(0)
        };
        let mut watch = world.pods.watch(key, options).await.expect("ready");
        match watch.next().await {
            Some(Err(StorageError::Corrupt { keys })) => format!("{} keys", keys.len()),
            item => short(item),
        }
    };
    // One more than an error names tells that there are more.
    let all = format!("{} keys", CORRUPT_KEYS_MAX + 1);
    assert_eq!(first("/pods/", true).await, all);
    assert_eq!(first("/pods/d/b000", false).await, "1 keys");
    let revision = world.script.state().revision;
    assert_eq!(
        first("/pods/d/a", false).await,
        format!("+a@{}", revision - 1)
    );
    assert_eq!(first("/pods/d/z", false).await, format!("+z@{revision}"));
}
