//! Types that are added, removed and listed again while the others are followed.

use futures::FutureExt;
use futures::stream::FuturesUnordered;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

use super::*;
use crate::clock::Instant;

/// Longer than any test takes on the stepped clock.
const HOUR: Duration = Duration::from_secs(3600);

fn widgets() -> TypeConfig {
    of_type("widgets", "/widgets/", WindowLimits::default())
}

/// Returns the state of a type and what follows, as a watch list delivers it.
async fn streamed_widgets(widgets: &Cacher) -> WatchStream {
    let watch = widgets.watch("/widgets/", streamed(Some(0)));
    watch.await.expect("ready")
}

/// Objects that are read newer than the stream must neither be lost nor be sent twice when the stream comes to them;
/// and nothing is served before, since the feed's revision is that of all its types.
#[tokio::test(start_paused = true)]
async fn a_type_is_added_while_changes_come() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/widgets/d/a", "x");
    world.script.hold();
    world.script.put("/widgets/d/b", "x");
    world.script.delete("/widgets/d/a");
    let widgets = world.feed.add_type(widgets());
    world.clock.sleep(Duration::from_secs(1)).await;
    assert!(widgets.check_ready().is_err(), "ahead of the stream");
    world.script.release();
    widgets.ready().await.expect("listed");
    let mut watch = streamed_widgets(&widgets).await;
    world.script.put("/widgets/d/c", "x");
    assert_eq!(next_items(&mut watch, 3).await, "+b@3 =4! +c@5");
    assert_eq!(world.script.state().follows, 1);
}

/// However many watchers a type has, no reader of another waits until they are woken.
#[tokio::test(start_paused = true)]
async fn readers_of_all_types_are_released_before_watchers_are_woken() {
    let world = World::new(WindowLimits::default()).await;
    let widgets = world.feed.add_type(widgets());
    widgets.ready().await.expect("listed");
    let mut watch = streamed_widgets(&widgets).await;
    assert_eq!(next_item(&mut watch).await, "=1!");
    let (order, mut happened) = tokio::sync::mpsc::unbounded_channel();
    let watching = async {
        assert_eq!(next_item(&mut watch).await, "+a@2");
        order.send("watched").expect("a test that listens");
    };
    let reading = async {
        let list = world.list(since(2)).await.expect("fresh");
        assert_eq!(listed(&list), "2: ");
        order.send("read").expect("a test that listens");
    };
    let writing = async {
        world.settle().await;
        world.script.put("/widgets/d/a", "x");
    };
    // Each with a waker of its own; those that are woken first are polled first.
    let mut all: FuturesUnordered<_> = [
        watching.boxed_local(),
        reading.boxed_local(),
        writing.boxed_local(),
    ]
    .into_iter()
    .collect();
    while all.next().await.is_some() {}
    assert_eq!(happened.recv().await, Some("read"));
    assert_eq!(happened.recv().await, Some("watched"));
}

/// One type whose list hangs must not keep the stream from the others: no change waits for it, and
/// no read.
#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_delays_nobody() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(since(1)).await;
    world.script.state().hung = Some("/widgets/".to_owned());
    let hanging = world.feed.add_type(widgets());
    world.settle().await;
    let gadgets = of_type("gadgets", "/gadgets/", WindowLimits::default());
    let gadgets = world.feed.add_type(gadgets);
    let begun = world.clock.now();
    for number in 0..50 {
        let revision = world.script.put(&format!("/pods/d/{number}"), "x");
        assert_eq!(next_item(&mut watch).await, format!("+{number}@{revision}"));
    }
    let list = world.list(newest());
    assert_eq!(list.await.expect("from memory").items.len(), 50);
    gadgets.ready().await.expect("listed");
    assert!(world.clock.now() - begun < Duration::from_secs(1));
    assert!(hanging.check_ready().is_err());
    // Changes that come while the page is in flight are sent as well.
    world.script.put("/widgets/d/a", "x");
    world.script.put("/widgets/d/b", "x");
    world.script.delete("/widgets/d/a");
    world.clock.sleep(HOUR).await;
    world.script.state().hung = None;
    hanging.ready().await.expect("listed");
    let mut watch = streamed_widgets(&hanging).await;
    assert_eq!(next_items(&mut watch, 2).await, "+b@53 =54!");
}

/// A list in many pages, with changes before, in and behind what has been listed, ends in the
/// store's state to the letter.
#[tokio::test(start_paused = true)]
async fn a_list_under_changes_ends_in_the_stores_state() {
    for seed in 0..5_u32 {
        let world = World::new(WindowLimits::default()).await;
        for number in 0..5_000 {
            world.script.put(&format!("/widgets/d/{number:05}"), "x");
        }
        world.script.state().page_time = Duration::from_millis(20);
        let widgets = world.feed.add_type(widgets());
        let mut number = seed;
        for _ in 0..300 {
            // Numerical Recipes' generator: any will do, and a seed says it all.
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = format!("/widgets/d/{:05}", (number >> 8) % 6_000);
            if number % 3 == 0 && world.script.exists(&key) {
                world.script.delete(&key);
            } else {
                world.script.put(&key, "y");
            }
            if number % 5 == 0 {
                world.settle().await;
            }
        }
        widgets.ready().await.expect("listed");
        world.settle().await;
        let mut watch = streamed_widgets(&widgets).await;
        let mut received = Vec::new();
        let end = loop {
            let item = next_item(&mut watch).await;
            if item.starts_with('=') {
                break item;
            }
            received.push(item);
        };
        assert_eq!(end, format!("={}!", world.script.state().revision));
        assert_eq!(received, world.script.listed("/widgets/"), "seed {seed}");
    }
}

/// A page that takes longer than half a minute is requested again with half as many objects.
#[tokio::test(start_paused = true)]
async fn pages_that_take_too_long_become_smaller() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..2_000 {
        world.script.put(&format!("/widgets/d/{number:04}"), "x");
    }
    world.script.state().hung = Some("/widgets/".to_owned());
    let widgets = world.feed.add_type(widgets());
    world.clock.sleep(Duration::from_secs(45)).await;
    world.script.state().hung = None;
    let before = world.script.state().pages;
    widgets.ready().await.expect("listed");
    assert_eq!(world.script.state().pages, before + 2);
    assert_eq!(widgets.kept().0, 2_000);
}

/// A page is dropped if more keys change meanwhile than are remembered, and requested again with half as many objects.
#[tokio::test(start_paused = true)]
async fn a_page_during_which_too_many_keys_change_is_read_again() {
    for (changes, pages) in [(100_000, 1), (100_001, 3)] {
        let world = World::new(WindowLimits::default()).await;
        for number in 0..2_000 {
            world.script.put(&format!("/widgets/d/{number:04}"), "x");
        }
        world.settle().await;
        world.script.state().page_time = Duration::from_secs(1);
        let widgets = world.feed.add_type(widgets());
        world.settle().await;
        let before = world.script.state().pages;
        for number in 0..changes {
            world.script.delete(&format!("/widgets/gone/{number}"));
        }
        widgets.ready().await.expect("listed");
        let read = world.script.state().pages - before;
        assert_eq!(read, pages, "{changes} changes");
        assert_eq!(widgets.kept().0, 2_000);
    }
}

/// A list whose revision is compacted between two pages begins again where progress is not to be trusted.
#[tokio::test(start_paused = true)]
async fn a_list_of_one_revision_that_is_compacted_begins_again() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().trusted = false;
    for number in 0..4_001 {
        world.script.put(&format!("/widgets/d/{number:04}"), "x");
    }
    world.settle().await;
    world.script.state().page_time = Duration::from_secs(1);
    let widgets = world.feed.add_type(widgets());
    world.clock.sleep(Duration::from_millis(2_500)).await;
    // What changed before the list begins again is in its pages.
    world.script.put("/widgets/d/0001", "y");
    world.settle().await;
    world.script.compact();
    // The third page is refused, and the list begins again with the first.
    let pages = world.script.state().pages;
    while world.script.state().pages < pages + 2 {
        world.clock.sleep(Duration::from_millis(10)).await;
    }
    let complaint = widgets.complaint().expect("being listed");
    assert!(
        complaint.starts_with("widgets: listing, 2000 objects so far,"),
        "{complaint}"
    );
    widgets.ready().await.expect("listed");
    assert_eq!(widgets.kept().0, 4_001);
    assert_eq!(world.script.state().follows, 1, "nothing began anew");
}

/// The stream leaves the revision of a list behind where progress is not to be trusted, since all pages are of one
/// revision. It must not be taken for that of a store that was rolled back.
#[tokio::test(start_paused = true)]
async fn a_list_of_one_revision_is_left_behind_by_the_stream() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().trusted = false;
    for number in 0..5_000 {
        world.script.put(&format!("/widgets/d/{number:05}"), "x");
    }
    world.settle().await;
    let mut pods = world.watch(since(5_001)).await;
    world.script.state().page_time = Duration::from_millis(20);
    let widgets = world.feed.add_type(widgets());
    for number in 0..10 {
        let revision = world.script.put(&format!("/pods/d/{number}"), "x");
        assert_eq!(next_item(&mut pods).await, format!("+{number}@{revision}"));
        world.clock.sleep(Duration::from_millis(10)).await;
    }
    widgets.ready().await.expect("listed");
    assert_eq!(widgets.kept().0, 5_000);
    assert_eq!(world.script.state().follows, 1, "nothing began anew");
}

/// A CRD is deleted: its watches end, its memory is freed though its handle is still held, and its
/// metrics are not shown any more. When it is created again it is another type.
#[tokio::test(start_paused = true)]
async fn a_type_is_removed_and_comes_again() {
    let mut registry = Registry::default();
    let metrics = CacheMetrics::register(&mut registry);
    let world = World::with(
        Arc::new(Script::default()),
        WindowLimits::default(),
        metrics,
    );
    world.pods.ready().await.expect("listed");
    let first = world.feed.add_type(widgets());
    first.ready().await.expect("listed");
    world.script.put("/widgets/d/a", "x");
    let mut watch = first.watch("/widgets/", since(1)).await.expect("ready");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    let shown = |registry: &Registry| {
        let mut text = String::new();
        encode_registry(&mut text, registry).expect("text");
        text.contains("resource=\"widgets\"")
    };
    assert!(shown(&registry));
    world.feed.remove_type(&first);
    assert_eq!(next_item(&mut watch).await, "end");
    world.settle().await;
    assert!(!shown(&registry));
    assert!(first.ready().await.is_err());
    assert!(first.watch("/widgets/", since(1)).await.is_err());
    assert_eq!(first.kept(), (0, 0), "objects and events");
    world.script.put("/widgets/d/b", "x");
    let second = world.feed.add_type(widgets());
    second.ready().await.expect("listed");
    world.feed.remove_type(&first);
    let mut watch = streamed_widgets(&second).await;
    world.script.put("/widgets/d/c", "x");
    assert_eq!(next_items(&mut watch, 4).await, "+a@2 +b@3 =3! +c@4");
    assert!(world.pods.check_ready().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_type_that_takes_the_place_of_another_at_once_is_followed() {
    let world = World::new(WindowLimits::default()).await;
    let first = world.feed.add_type(widgets());
    first.ready().await.expect("listed");
    world.feed.remove_type(&first);
    let second = world.feed.add_type(widgets());
    second.ready().await.expect("listed");
    let mut watch = second.watch("/widgets/", since(1)).await.expect("ready");
    world.script.put("/widgets/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
}

#[tokio::test(start_paused = true)]
async fn a_type_is_listed_again_alone() {
    let world = World::new(WindowLimits::default()).await;
    let widgets = world.feed.add_type(widgets());
    widgets.ready().await.expect("listed");
    world.script.put("/widgets/d/a", "x");
    let mut pods = world.watch(since(1)).await;
    let mut before = widgets.watch("/widgets/", since(1)).await.expect("ready");
    assert_eq!(next_item(&mut before).await, "+a@2");
    world.feed.relist(&widgets);
    assert_eq!(next_item(&mut before).await, "end");
    widgets.ready().await.expect("listed");
    let mut after = widgets.watch("/widgets/", since(2)).await.expect("ready");
    world.script.put("/widgets/d/b", "x");
    world.script.put("/pods/d/p", "x");
    assert_eq!(next_item(&mut after).await, "+b@3");
    assert_eq!(next_item(&mut pods).await, "+p@4");
    assert_eq!(world.script.state().follows, 1);
}

/// k#123072, etcd#17529: a starved stream skipped events when compaction overtook it, and caches kept
/// objects for ever that had been deleted. etcd is mended; a loss can still be noticed where it
/// contradicts what is known, since a change says whether it created its key. Then the type is
/// listed again, alone.
#[tokio::test(start_paused = true)]
async fn k123072_a_deletion_that_was_lost_is_noticed_and_mended() {
    let world = World::new(WindowLimits::default()).await;
    let widgets = world.feed.add_type(widgets());
    widgets.ready().await.expect("listed");
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/b", "x");
    let mut watch = world.watch(since(1)).await;
    let mut other = widgets.watch("/widgets/", since(1)).await.expect("ready");
    assert_eq!(next_items(&mut watch, 2).await, "+a@2 +b@3");
    world.script.delete_unsent("/pods/d/a");
    world.script.delete_unsent("/pods/d/b");
    world.script.put("/pods/d/a", "y");
    let received = next_item(&mut watch).await;
    assert_eq!(received, "end", "a was modified, as far as is known here");
    world.pods.ready().await.expect("listed");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "6: a");
    world.script.put("/widgets/d/w", "x");
    assert_eq!(next_item(&mut other).await, "+w@7", "the others went on");
}

/// A store that contradicts itself without end is not listed without pause.
#[tokio::test(start_paused = true)]
async fn a_type_with_many_faults_is_listed_ever_more_rarely() {
    let world = World::new(WindowLimits::default()).await;
    let begun = world.clock.now();
    let over = |now: Instant| now - begun > Duration::from_secs(300);
    let pages = world.script.state().pages;
    while !over(world.clock.now()) {
        world.script.put("/pods/d/a", "x");
        world.settle().await;
        world.script.delete_unsent("/pods/d/a");
        world.clock.sleep(Duration::from_millis(100)).await;
    }
    let pages = world.script.state().pages - pages;
    assert!((10..80).contains(&pages), "{pages} lists in 300 s");
}

/// The page is of a revision that no event brings, so the stream has to be asked how far it is; otherwise it is left
/// alone.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_ahead_of_the_stream_asks_for_progress() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().revision = 9;
    let widgets = world.feed.add_type(widgets());
    world.clock.sleep(Duration::from_secs(1)).await;
    widgets.check_ready().expect("listed");
    let requests = || world.script.state().progress_requests;
    let before = requests();
    world.script.state().hung = Some("/gadgets/".to_owned());
    let gadgets = of_type("gadgets", "/gadgets/", WindowLimits::default());
    let gadgets = world.feed.add_type(gadgets);
    world.clock.sleep(Duration::from_secs(10)).await;
    assert!(gadgets.check_ready().is_err());
    assert_eq!(requests(), before);
}

#[tokio::test(start_paused = true)]
async fn four_types_are_listed_at_a_time() {
    let world = World::new(WindowLimits::default()).await;
    world.script.state().page_time = Duration::from_secs(1);
    let before = world.script.state().pages;
    for name in ["a", "b", "c", "d", "e", "f"] {
        let prefix = format!("/{name}/");
        let of_name = of_type(name, &prefix, WindowLimits::default());
        drop(world.feed.add_type(of_name));
    }
    world.clock.sleep(Duration::from_millis(1_500)).await;
    assert_eq!(world.script.state().pages, before + 4);
    world.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(world.script.state().pages, before + 6);
}

/// A page may take long to decode, and others run meanwhile.
#[tokio::test(start_paused = true)]
async fn a_page_is_decoded_in_parts() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..2_000 {
        world.script.put(&format!("/widgets/d/{number:04}"), "x");
    }
    world.settle().await;
    let widgets = world.feed.add_type(widgets());
    let mut turns = 0;
    while widgets.check_ready().is_err() && turns < 1_000 {
        tokio::task::yield_now().await;
        turns += 1;
    }
    assert!(
        (2_000 / 50..2_000 / 25).contains(&turns),
        "{turns} turns of others"
    );
}

/// A page below what the store has reported shows that the store was put back, though the stream goes on.
#[tokio::test(start_paused = true)]
async fn a_page_of_an_older_state_begins_a_new_history() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c"]);
    world.settle().await;
    let mut watch = world.watch(since(4)).await;
    world.script.fall_back(2);
    let widgets = world.feed.add_type(widgets());
    let item = next_item(&mut watch).await;
    assert!(item.ends_with("too old."), "{item}");
    widgets.ready().await.expect("listed");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "2: a");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_type_waits_on_in_the_next_history() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    world.script.state().hung = Some("/widgets/".to_owned());
    let (waiting, removed) = (world.feed.add_type(widgets()), {
        let gone = of_type("gone", "/gone/", WindowLimits::default());
        world.feed.add_type(gone)
    });
    removed.ready().await.expect("listed");
    world.feed.remove_type(&removed);
    let happens = async {
        world.settle().await;
        world.script.roll_back(1);
        world.clock.sleep(Duration::from_secs(1)).await;
        world.script.state().hung = None;
    };
    let (ready, ()) = tokio::join!(waiting.ready(), happens);
    ready.expect("listed in the new history");
    assert!(removed.ready().await.is_err());
}

/// The history of a stream is compared once it is open: before that the store may be put back again.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_put_back_while_its_stream_is_opened_begins_a_new_history() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c"]);
    world.settle().await;
    world.script.state().falls_back = Some(2);
    // A notice of progress at a lower revision would tell as well.
    world.script.state().answers_progress = false;
    world.script.break_streams();
    world.clock.sleep(Duration::from_secs(1)).await;
    world.pods.check_ready().expect("listed in the new history");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "2: a");
}

/// The store is put back after its stream has ended because of a compaction, and before the types are listed again.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_put_back_before_it_is_listed_begins_a_new_history() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c"]);
    world.settle().await;
    world.script.lose_history();
    world.script.fall_back(2);
    world.clock.sleep(Duration::from_secs(1)).await;
    world.pods.check_ready().expect("listed in the new history");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "2: a");
}
