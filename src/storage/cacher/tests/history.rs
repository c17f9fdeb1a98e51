//! Bugs that watch caches have had, each as a test: what went wrong elsewhere must not go wrong here.
//!
//! `k#` is an issue or pull request of kubernetes/kubernetes. What other files hold:
//!
//! | bug | test |
//! |---|---|
//! | k#49956 an empty window lost the first event | `watching::k49956_a_watch_from_an_empty_window_gets_the_next_event` |
//! | k#73845 events older than the state came after it | `watching::k73845_events_after_the_state_are_newer_than_the_state` |
//! | k#114845 no version was taken for version 0 | `watching::k114845_no_version_is_not_version_zero`, and the matrix below |
//! | k#24091 a slow watcher delayed all others | `watching::k24091_a_slow_watcher_catches_up_and_delays_nobody`, and below |
//! | k#68065 a watch that selects rarely aged | `watching::k68065_a_quiet_watch_does_not_age`, and below |
//! | k#91073 a quiet type was never fresh | `reading::k91073_a_quiet_type_is_fresh` |
//! | k#123676 pages of several revisions | `reading::k123676_pages_are_one_snapshot`, and the matrix below |
//! | k#125145 a namespace's watch saw another's | `watching::k125145_scopes_end_at_a_slash`, and below |
//! | k#116122 a watch across a re-list missed events | `watching::k116122_watches_opened_across_a_relist_miss_nothing` |
//! | k#38670 a stopped watch left something behind | `watching::k38670_a_dropped_watch_leaves_nothing_behind` |
//! | k#139618 replaced objects stayed in memory | `memory::k139618_objects_that_were_replaced_are_let_go` |
//! | k#87292 a store that was restarted was lost | `feeding::k87292_a_store_that_is_away_is_found_again` |
//! | k#108252, k#131020, k#134707, k#139658 races of dispatch, errors and stops | `shuttle-tests`, over thousands of schedules |

use std::collections::BTreeMap;

use futures::FutureExt;

use super::scripted::STORE_REVISION;
use super::*;
use crate::meta::{Object, VersionMatch};
use crate::storage::GetOptions;

/// k#116436: a watch of the state was filled while it was read, so that it showed objects newer
/// than the version that it had begun at, and their events came again.
#[tokio::test(start_paused = true)]
async fn k116436_a_state_shows_nothing_newer_than_its_beginning() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..350 {
        world.script.put(&format!("/pods/d/p{number:03}"), "x");
    }
    world.settle().await;
    for options in [streamed(Some(0)), streamed(None), since(0)] {
        let begun = world.script.state().revision;
        let bookmarks = options.send_initial_events.is_some();
        let before = world.list(since(0)).await.expect("as it is");
        let mut watch = world.watch(options).await;
        for object in &before.items[..120] {
            let expected = format!("+{}@{}", object.name(), object.revision());
            assert_eq!(next_item(&mut watch).await, expected);
        }
        let changed = world.script.put("/pods/d/p300", "y");
        let deleted = world.script.delete("/pods/d/p349");
        world.settle().await;
        for object in &before.items[120..] {
            let expected = format!("+{}@{}", object.name(), object.revision());
            assert_eq!(next_item(&mut watch).await, expected);
        }
        if bookmarks {
            assert_eq!(next_item(&mut watch).await, format!("={begun}!"));
        }
        let events = format!("~p300@{changed} -p349@{deleted}");
        assert_eq!(next_items(&mut watch, 2).await, events);
        world.script.put("/pods/d/p349", "x");
        world.settle().await;
    }
}

/// k#123676, k#132132, k#94002: lists with a version, a limit or a continuation went to the wrong
/// side, or had their limit ignored, or mixed revisions.
#[tokio::test(start_paused = true)]
async fn k132132_every_list_has_the_revision_and_length_that_it_asked_for() {
    use VersionMatch::{Exact, NotOlderThan};
    let world = World::new(WindowLimits::default()).await;
    for name in ["a", "b", "c", "d", "e"] {
        world.script.put(&format!("/pods/n/{name}"), "x");
    }
    world.script.put("/services/n/s", "x");
    world.settle().await;
    // Version, match, limit: the list.
    let rows = [
        (None, None, 0, "7: a b c d e"),
        (None, None, 2, "7: a b ..."),
        (None, None, 5, "7: a b c d e"),
        (Some(0), None, 0, "7: a b c d e"),
        (Some(0), None, 2, "7: a b c d e"),
        (Some(0), Some(NotOlderThan), 0, "7: a b c d e"),
        (Some(0), Some(NotOlderThan), 2, "7: a b c d e"),
        (Some(4), None, 0, "7: a b c d e"),
        (Some(4), None, 2, "4: a b ..."),
        (Some(4), Some(NotOlderThan), 0, "7: a b c d e"),
        (Some(4), Some(NotOlderThan), 2, "7: a b ..."),
        (Some(4), Some(Exact), 0, "4: a b c"),
        (Some(4), Some(Exact), 2, "4: a b ..."),
        (Some(4), Some(Exact), 3, "4: a b c"),
        (Some(7), None, 0, "7: a b c d e"),
        (Some(7), None, 2, "7: a b ..."),
        (Some(7), Some(Exact), 0, "7: a b c d e"),
        (Some(1), Some(Exact), 2, "1: "),
    ];
    for (version, version_match, limit, expected) in rows {
        let mut options = ListOptions {
            resource_version: version.map(ResourceVersion),
            version_match,
            ..since(0)
        };
        options.predicate.limit = limit;
        let row = format!("{version:?} {version_match:?} {limit}");
        let mut page = world.list(options.clone()).await.expect("from memory");
        assert_eq!(listed(&page), expected, "{row}");
        // What is left comes from the same revision.
        let (revision, mut names) = (page.revision, names(&page));
        while let Some(token) = page.continue_token.take() {
            let mut rest = newest();
            rest.predicate.limit = limit;
            rest.predicate.continue_token = token;
            page = world.list(rest).await.expect("from memory");
            assert_eq!(page.revision, revision, "{row}");
            names.extend(self::names(&page));
        }
        let whole = match revision {
            1 => vec![],
            4 => vec!["a", "b", "c"],
            _ => vec!["a", "b", "c", "d", "e"],
        };
        assert_eq!(names, whole, "{row}");
    }
    assert_eq!(*world.store.lists.lock().expect("sound"), 0);
}

fn names(list: &List) -> Vec<String> {
    list.items.iter().map(|it| it.name().to_owned()).collect()
}

/// k#12782, k#13135, k#117137: a store that failed, or readers that waited under the cache's lock,
/// stopped the writer and with it everybody.
#[tokio::test(start_paused = true)]
async fn k117137_waiting_readers_and_a_failing_store_stop_nobody() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(since(1)).await;
    let begun = world.clock.now();
    let future = (0..200).map(|number| world.list(since(50 + number)));
    let mut waiting = std::pin::pin!(futures::future::join_all(future));
    assert!((&mut waiting).now_or_never().is_none());
    for number in 0..100_u64 {
        if number % 10 == 0 {
            world.script.break_streams();
        }
        let revision = world.script.put("/pods/d/a", "x");
        let sign = if number == 0 { '+' } else { '~' };
        assert_eq!(next_item(&mut watch).await, format!("{sign}a@{revision}"));
    }
    assert!(world.clock.now() - begun < Duration::from_secs(3));
    let mut answered = BTreeMap::new();
    for list in waiting.await {
        let answer = match list {
            Ok(list) => {
                assert_eq!(list.items.len(), 1);
                "served"
            }
            Err(StorageError::TooLargeResourceVersion { .. }) => "refused",
            Err(error) => panic!("{error}"),
        };
        *answered.entry(answer).or_insert(0) += 1;
    }
    // Those up to the newest revision, 101, and those beyond it.
    assert_eq!(answered, [("served", 52), ("refused", 148)].into());
    assert!((world.clock.now() - begun).as_secs() <= 3);
}

/// k#24091, k#73958, k#141228: a watcher that did not read was waited for, then killed; it came back
/// with a list, and the more there were the more were killed.
#[tokio::test(start_paused = true)]
async fn k141228_stalled_watchers_are_not_ended() {
    let limits = WindowLimits {
        events_max: 5_000,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(world.watch(since(1)).await);
    }
    let mut fast = world.watch(since(1)).await;
    for number in 0..4_000 {
        let revision = world.script.put(&format!("/pods/d/{number}"), "x");
        assert_eq!(next_item(&mut fast).await, format!("+{number}@{revision}"));
    }
    // Within the time that the window covers, however far they are behind.
    world.clock.sleep(Duration::from_secs(70)).await;
    for mut watch in stalled {
        for number in 0..4_000 {
            let item = item_now(&mut watch).await;
            assert_eq!(item, Some(format!("+{number}@{}", number + 2)));
        }
    }
}

/// k#64484, k#68647, k#59478, k#107463, k#122940: an object of the cache was changed by one of those
/// who had it. Here nobody can: all have the same immutable bytes.
#[tokio::test(start_paused = true)]
async fn k64484_one_object_is_everybodys() {
    fn is_shared<T: Send + Sync + 'static>(_: &Arc<T>) {}
    let world = World::new(WindowLimits::default()).await;
    let mut watches = [world.watch(since(1)).await, world.watch(since(1)).await];
    world.script.put("/pods/d/a", "x");
    let mut objects: Vec<Arc<Object>> = Vec::new();
    for watch in &mut watches {
        let Some(Ok(WatchEvent::Added(object))) = watch.next().await else {
            panic!("an object was put");
        };
        objects.push(object);
    }
    let list = world.list(since(0)).await.expect("as it is");
    objects.extend(list.items);
    let get = GetOptions {
        resource_version: Some(ResourceVersion(0)),
    };
    objects.push(world.delegator.get("/pods/d/a", get).await.expect("cached"));
    is_shared(&objects[0]);
    for object in &objects {
        assert!(Arc::ptr_eq(object, &objects[0]), "a copy");
    }
    world.script.put("/pods/d/a", "y");
    world.settle().await;
    assert_eq!(objects[0].attributes().labels().get("app"), Some("x"));
}

/// Commit 08910cc6f of 2017: a DELETED event carried the wrong object, or its old version.
#[tokio::test(start_paused = true)]
async fn a_deletion_carries_the_last_state_at_its_own_revision() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/a", "y");
    let deleted = world.script.delete("/pods/d/a");
    world.settle().await;
    let mut live = world.watch(since(deleted)).await;
    let mut replayed = world.watch(since(3)).await;
    world.script.put("/pods/d/a", "z");
    let last = world.script.delete("/pods/d/a");
    let of = |revision, app: &str| (revision, Some(app.to_owned()));
    let expected = [of(last, "z")];
    assert_eq!(deletions(&mut live, 2).await, expected);
    let expected = [of(deleted, "y"), of(last, "z")];
    assert_eq!(deletions(&mut replayed, 3).await, expected);
}

/// Returns the revision and the label of what is deleted by the next `count` events.
async fn deletions(watch: &mut WatchStream, count: usize) -> Vec<(u64, Option<String>)> {
    let mut deletions = Vec::new();
    for event in watch.take(count).collect::<Vec<_>>().await {
        if let WatchEvent::Deleted(object) = event.expect("an event") {
            let app = object.attributes().labels().get("app").map(str::to_owned);
            deletions.push((object.revision(), app));
        }
    }
    deletions
}

/// k#68065, k#107133, k#91073: after ten idle minutes a client's version was too old, or too new.
#[tokio::test(start_paused = true)]
async fn k107133_ten_idle_minutes_age_nobody() {
    let world = World::new(WindowLimits::default()).await;
    let written = world.script.put("/pods/d/a", "x");
    let mut watch = world.watch(bookmarked(Some(1))).await;
    assert_eq!(next_item(&mut watch).await, format!("+a@{written}"));
    drop(watch);
    world.clock.sleep(Duration::from_secs(600)).await;
    // Where it was, although nothing of its type has happened since.
    let mut resumed = world.watch(bookmarked(Some(written))).await;
    assert_eq!(next_item(&mut resumed).await, format!("={written}"));
    // Other types go on; bookmarks take the quiet one along.
    let mut reported = written;
    for minute in 0..10 {
        for _ in 0..500 {
            world.script.put("/services/d/s", "x");
        }
        let newest = world.script.state().revision;
        assert_eq!(
            next_item(&mut resumed).await,
            format!("={newest}"),
            "{minute}"
        );
        reported = newest;
    }
    drop(resumed);
    world.clock.sleep(Duration::from_secs(600)).await;
    let begun = world.clock.now();
    let list = world.list(since(reported)).await.expect("no 504");
    assert_eq!(listed(&list), format!("{reported}: a"));
    let mut resumed = world.watch(bookmarked(Some(reported))).await;
    let mut behind = world.watch(bookmarked(Some(written))).await;
    assert_eq!(world.clock.now(), begun, "nobody waited");
    let next = world.script.put("/pods/d/b", "x");
    assert_eq!(next_item(&mut resumed).await, format!("+b@{next}"));
    assert_eq!(next_item(&mut behind).await, format!("+b@{next}"), "no 410");
}

/// k#113730, k#125145: lists of the cache were in another order than the store's, and a prefix was
/// taken for a folder.
#[tokio::test(start_paused = true)]
async fn k113730_lists_are_in_the_order_of_the_stores_bytes() {
    let world = World::new(WindowLimits::default()).await;
    // A slash lies between a dot and a digit.
    let keys = [
        "/pods/a-b/x",
        "/pods/a.b/x",
        "/pods/a/a-b",
        "/pods/a/a.b",
        "/pods/a/a0",
        "/pods/a/ab",
        "/pods/a/b",
        "/pods/a0/x",
        "/pods/aa/x",
        "/pods/b/x",
    ];
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(keys, sorted, "the order of bytes");
    for key in keys.iter().rev() {
        world.script.put(key, "x");
    }
    world.settle().await;
    let key_of = |object: &Arc<Object>| format!("/pods/{}/{}", object.namespace(), object.name());
    let list = world.list(since(0)).await.expect("as it is");
    let order: Vec<_> = list.items.iter().map(key_of).collect();
    assert_eq!(order, keys);
    let mut watch = world.watch(since(0)).await;
    for key in keys {
        let Some(Ok(WatchEvent::Added(object))) = watch.next().await else {
            panic!("the state has {key}");
        };
        assert_eq!(key_of(&object), key);
    }
    for limit in 1..4 {
        let mut paged = Vec::new();
        let mut options = newest();
        options.predicate.limit = limit;
        for _ in 0..keys.len() {
            let page = world.list(options.clone()).await.expect("from memory");
            paged.extend(page.items.iter().map(key_of));
            let Some(token) = page.continue_token else {
                break;
            };
            options.predicate.continue_token = token;
        }
        assert_eq!(paged, keys, "pages of {limit}");
    }
    for (folder, count) in [("/pods/a/", 5), ("/pods/a", 5), ("/pods/a-b/", 1)] {
        let list = world.delegator.get_list(folder, since(0)).await;
        assert_eq!(list.expect("as it is").items.len(), count, "{folder}");
    }
    assert_eq!(*world.store.lists.lock().expect("sound"), 0);
}

/// k#138728, k#139526: who began with the state of a huge type held the writer for as long as it took
/// to copy it. Here a state is a snapshot: while fifty are on their way, everybody else goes on.
#[tokio::test(start_paused = true)]
async fn k139526_states_on_their_way_do_not_hold_the_writer() {
    let script = Arc::new(Script::default());
    let objects = 5_000;
    for number in 0..objects {
        script.put(&format!("/pods/d/p{number}"), "x");
    }
    script.compact();
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    world.settle().await;
    let newest = world.script.state().revision;
    let mut live = world.watch(since(newest)).await;
    let mut begun = Vec::new();
    for _ in 0..50 {
        let mut watch = world.watch(streamed(Some(0))).await;
        assert!(next_item(&mut watch).await.starts_with("+p"));
        begun.push(watch);
    }
    for _ in 0..20 {
        let revision = world.script.put("/pods/d/p0", "y");
        assert_eq!(item_now(&mut live).await, Some(format!("~p0@{revision}")));
        let list = world.list(since(revision)).await.expect("fresh");
        assert_eq!(list.items.len(), objects);
    }
    for mut watch in begun {
        for _ in 1..objects {
            let item = item_now(&mut watch).await.expect("the state");
            assert!(item.starts_with("+p"), "{item}");
        }
        assert_eq!(item_now(&mut watch).await, Some(format!("={newest}!")));
    }
}

/// antrea#8123: a server that never marked the end of the state let its clients wait for ever.
#[tokio::test(start_paused = true)]
async fn antrea8123_the_end_of_the_state_always_comes() {
    // Around the number of objects that are looked at in one go.
    for objects in [0, 1, 99, 100, 101, 200, 301] {
        let script = Arc::new(Script::default());
        for number in 0..objects {
            script.put(&format!("/pods/d/p{number:03}"), "x");
        }
        let limits = so_many_events(5);
        let world = World::of(script, limits);
        world.pods.ready().await.expect("listed");
        world.settle().await;
        let newest = world.script.state().revision;
        let end = format!("={newest}!");
        let nothing = labelled("nothing", streamed(Some(0)));
        let single = ListOptions {
            recursive: false,
            ..streamed(Some(0))
        };
        let mut none = world.watch(nothing).await;
        assert_eq!(next_item(&mut none).await, end, "{objects}");
        let single = world.pods.watch("/pods/d/none", single).await;
        assert_eq!(
            next_item(&mut single.expect("ready")).await,
            end,
            "{objects}"
        );
        // Not even when the window passes it meanwhile, or the server goes.
        let mut slow = world.watch(streamed(Some(0))).await;
        let mut drained = world.watch(streamed(Some(0))).await;
        world.feed.drain();
        for _ in 0..20 {
            world.script.put("/pods/e/other", "x");
        }
        world.settle().await;
        for watch in [&mut slow, &mut drained] {
            for _ in 0..objects {
                assert!(next_item(watch).await.starts_with("+p"));
            }
            assert_eq!(next_item(watch).await, end, "{objects}");
        }
    }
}

/// k#131020: after an error nothing may follow, and an error must not be lost.
#[tokio::test(start_paused = true)]
async fn k131020_an_error_is_the_last_item() {
    let world = World::new(so_many_events(5)).await;
    let mut late = world.watch(bookmarked(Some(1))).await;
    for number in 0..20 {
        world.script.put(&format!("/pods/d/{number}"), "x");
    }
    world.settle().await;
    let mut refused = world.watch(bookmarked(Some(2))).await;
    let mut future = world.watch(streamed(Some(999))).await;
    let watches = [&mut late, &mut refused, &mut future];
    for (watch, error) in watches.into_iter().zip(["too old", "too old", "Too large"]) {
        let item = next_item(watch).await;
        assert!(item.starts_with(error), "{item}");
        world.script.put("/pods/d/a", "x");
        world.clock.sleep(Duration::from_secs(61)).await;
        assert_eq!(next_items(watch, 2).await, "end end");
    }
}

/// A list that only the store can answer is the store's, whatever its limit.
#[tokio::test(start_paused = true)]
async fn k94002_what_the_window_has_lost_is_asked_of_the_store() {
    let world = World::new(so_many_events(2)).await;
    for name in ["a", "b", "c", "d", "e"] {
        world.script.put(&format!("/pods/n/{name}"), "x");
    }
    world.settle().await;
    let page = |revision, limit| {
        let mut options = since(revision);
        options.predicate.limit = limit;
        world.list(options)
    };
    assert_eq!(listed(&page(4, 2).await.expect("kept")), "4: a b ...");
    let older = page(3, 2).await.expect("the store's");
    assert_eq!(older.revision, STORE_REVISION);
    // A list that was begun in memory goes on at the store when its revision has left the window.
    let first = page(5, 2).await.expect("kept");
    for name in ["f", "g", "h"] {
        world.script.put(&format!("/pods/n/{name}"), "x");
    }
    world.settle().await;
    let mut options = newest();
    options.predicate.continue_token = first.continue_token.expect("more");
    let rest = world.list(options).await.expect("the store's");
    assert_eq!(rest.revision, STORE_REVISION);
}
