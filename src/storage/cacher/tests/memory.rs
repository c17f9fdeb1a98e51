//! Memory: what is counted, and that what is no longer wanted is let go.

use super::*;
use crate::budget::Account;

fn objects(world: &World) -> u64 {
    world.ledger.spent(Account::Objects)
}

#[tokio::test(start_paused = true)]
async fn objects_are_counted_while_they_are_there() {
    let world = World::new(WindowLimits::default()).await;
    assert_eq!(objects(&world), 0);
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    let one = objects(&world);
    let json = world
        .pods
        .cached("/pods/d/a")
        .expect("cached")
        .stored()
        .len() as u64;
    assert!(one > json, "the key and the record count too");
    world.script.put("/pods/d/b", "x");
    world.settle().await;
    assert_eq!(objects(&world), 2 * one);
    world.script.put("/pods/d/a", "longer");
    world.settle().await;
    assert_eq!(objects(&world), 2 * one + 5);
    world
        .script
        .put_raw("/pods/d/b", bytes::Bytes::from_static(b"no object"));
    world.settle().await;
    assert_eq!(
        objects(&world),
        2 * one + 5,
        "the last good content is kept"
    );
    world.script.delete("/pods/d/a");
    world.script.delete("/pods/d/b");
    world.settle().await;
    assert_eq!(objects(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_listing_is_counted_and_takes_the_place_of_what_was_there() {
    let mut world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/b", "x");
    world.settle().await;
    let two = objects(&world);
    world.script.hold();
    world.script.delete("/pods/d/b");
    world.script.lose_history();
    world.script.release();
    world.settle().await;
    world.pods.ready().await.expect("listed again");
    assert_eq!(objects(&world), two / 2);
    drop(world.shutdown.take());
    assert!(world.running.join_next().await.is_some());
    assert_eq!(objects(&world), 0, "a feed that has ended holds nothing");
}

/// A page has 2,000 objects and takes a second.
#[tokio::test(start_paused = true)]
async fn a_list_in_progress_is_counted_and_shown() {
    let world = World::new(WindowLimits::default()).await;
    for number in 0..4_001 {
        world.script.put(&format!("/widgets/d/{number:04}"), "x");
    }
    world.settle().await;
    world.script.state().page_time = Duration::from_secs(1);
    let widgets = of_type("widgets", "/widgets/", WindowLimits::default());
    let widgets = world.feed.add_type(widgets);
    let shows = |objects: u64| {
        let complaint = widgets.complaint().expect("being listed");
        let start = format!("widgets: listing, {objects} objects so far,");
        assert!(complaint.starts_with(&start), "{complaint}");
    };
    world.clock.sleep(Duration::from_millis(1_500)).await;
    shows(2_000);
    let page = objects(&world);
    assert!(page > 2_000 * 100, "{page} bytes for a page");
    world.script.delete("/widgets/d/0000");
    world.clock.sleep(Duration::from_secs(1)).await;
    shows(3_999);
    assert!(objects(&world) > page * 19 / 10);
    widgets.ready().await.expect("listed");
    // Revisions have more digits than at first.
    assert!((page * 2..page * 21 / 10).contains(&objects(&world)));
}

#[tokio::test(start_paused = true)]
async fn history_is_counted_beside_the_newest_state() {
    let mut world = World::new(WindowLimits::default()).await;
    let windows = |world: &World| world.ledger.spent(Account::Windows);
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    let created = windows(&world);
    let json = world
        .pods
        .cached("/pods/d/a")
        .expect("cached")
        .stored()
        .len() as u64;
    assert!(created > 0, "the record of the event");
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    assert_eq!(windows(&world), 2 * created + json, "and what was replaced");
    world.script.delete("/pods/d/a");
    world.settle().await;
    assert_eq!(
        windows(&world),
        3 * created + 2 * json,
        "a deletion shows it again, in the same bytes"
    );
    assert_eq!(objects(&world), 0);
    world.script.lose_history();
    world.settle().await;
    world.pods.ready().await.expect("listed again");
    assert_eq!(windows(&world), 0);
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    drop(world.shutdown.take());
    assert!(world.running.join_next().await.is_some());
    assert_eq!(world.ledger.total(), 0);
}

/// History gives way when memory is short, but never what running watches have still to read. The
/// largest window goes first.
#[tokio::test(start_paused = true)]
async fn windows_shrink_when_memory_is_short_and_no_running_watch_notices() {
    const UPDATES: u64 = 1_500;
    let ledger = Ledger::new(800 << 10);
    let mark = 600 << 10;
    let metrics = CacheMetrics::default();
    let limits = WindowLimits::default();
    let world = World::within(Arc::default(), limits, metrics, ledger.clone());
    let small = world.feed.add_type(of_type("small", "/small/", limits));
    world.pods.ready().await.expect("listed");
    small.ready().await.expect("listed");
    let mut watch = world.watch(since(1)).await;
    world.script.put("/small/d/a", "x");
    for number in 0..UPDATES {
        let revision = world.script.put("/pods/d/a", "x");
        let sign = if number == 0 { '+' } else { '~' };
        assert_eq!(next_item(&mut watch).await, format!("{sign}a@{revision}"));
    }
    world.settle().await;
    assert!(ledger.spent(Account::Windows) > mark, "the youngest stay");
    let mut late = world.watch(since(2)).await;
    assert!(next_item(&mut late).await.starts_with("+a@"));
    drop(late);
    world.clock.sleep(Duration::from_secs(8)).await;
    let spent = ledger.spent(Account::Windows);
    assert!(spent <= mark, "{spent} bytes of history");
    let mut late = world.watch(since(2)).await;
    assert!(
        next_item(&mut late)
            .await
            .starts_with("too old resource version")
    );
    let mut unharmed = small.watch("/small/", since(1)).await.expect("ready");
    assert_eq!(next_item(&mut unharmed).await, "+a@2");
    let revision = world.script.put("/pods/d/a", "y");
    assert_eq!(next_item(&mut watch).await, format!("~a@{revision}"));
}

/// The reflector does not notice by itself that others take memory.
#[tokio::test(start_paused = true)]
async fn windows_shrink_when_the_feed_is_told() {
    let ledger = Ledger::new(800 << 10);
    let limits = WindowLimits::default();
    let world = World::within(
        Arc::default(),
        limits,
        CacheMetrics::default(),
        ledger.clone(),
    );
    world.pods.ready().await.expect("listed");
    for _ in 0..500 {
        world.script.put("/pods/d/a", "x");
    }
    world.clock.sleep(Duration::from_secs(10)).await;
    let windows = || ledger.spent(Account::Windows);
    let before = windows();
    let mut others = ledger.share(Account::Requests);
    others.set(700 << 10);
    assert!(ledger.owed_by_windows() > 0);
    world.settle().await;
    assert_eq!(windows(), before);
    world.feed.shrink_windows();
    world.settle().await;
    assert!(windows() < before / 2, "{} of {before} bytes", windows());
}

/// Events come in segments, which are as young as their last event: a client that is a moment behind finds its place.
#[tokio::test(start_paused = true)]
async fn history_of_the_last_seconds_stays_whatever_came_before_it() {
    let ledger = Ledger::new(800 << 10);
    let (limits, metrics) = (WindowLimits::default(), CacheMetrics::default());
    let world = World::within(Arc::default(), limits, metrics, ledger.clone());
    world.pods.ready().await.expect("listed");
    // Less than the time that a segment lasts, so that both events are in one; it began longer ago than history must
    // last.
    let (apart, after) = (Duration::from_secs(4), Duration::from_secs(2));
    let first = world.script.put("/pods/d/a", "x");
    world.clock.sleep(apart).await;
    let second = world.script.put("/pods/d/a", "x");
    world.clock.sleep(after).await;
    let mut others = ledger.share(Account::Requests);
    others.set(799 << 10);
    assert!(ledger.owed_by_windows() > 0);
    world.feed.shrink_windows();
    world.settle().await;
    let mut late = world.watch(since(first)).await;
    assert_eq!(next_item(&mut late).await, format!("~a@{second}"));
    world.clock.sleep(apart).await;
    world.feed.shrink_windows();
    world.settle().await;
    let mut late = world.watch(since(first)).await;
    assert!(next_item(&mut late).await.starts_with("too old"));
}

/// k#139618: the slots of a ring that was emptied by a replacement kept pointing at the objects of
/// before, which stayed alive until as many events had come again; in a quiet type for good.
#[tokio::test(start_paused = true)]
async fn k139618_objects_that_were_replaced_are_let_go() {
    let world = World::new(WindowLimits::default()).await;
    let mut replaced = Vec::new();
    for version in 0..50 {
        world.script.put("/pods/d/a", &version.to_string());
        world.settle().await;
        let object = world.pods.cached("/pods/d/a").expect("cached");
        replaced.push(Arc::downgrade(&object));
    }
    assert!(
        replaced.iter().all(|object| object.strong_count() > 0),
        "the window keeps its history"
    );
    world.script.lose_history();
    world.settle().await;
    world.pods.ready().await.expect("listed again");
    let alive = replaced.iter().filter(|it| it.strong_count() > 0).count();
    assert_eq!(alive, 0, "objects that nobody can ask for any more");
}

/// The number of watches that come and go every minute of an idle day.
const WATCHES_A_MINUTE: usize = 20;

/// k#80690, k#96259: watchers that had gone stayed in the lists of those who are due a bookmark. The
/// lists were only gone through when an event came, so that those of an idle type grew for ever; and
/// when the clock jumped, whole stretches of lists were never looked at again. So watches come and
/// go for an idle day, and then the clock jumps by a day: the one that stays gets its bookmark every
/// minute, and nothing is left of the others.
#[tokio::test(start_paused = true)]
async fn k80690_an_idle_day_of_coming_and_going_leaves_nothing_behind() {
    const MINUTES: usize = 24 * 60;
    let world = World::new(WindowLimits::default()).await;
    let mut stays = world.watch(bookmarked(Some(1))).await;
    for minute in 0..MINUTES {
        let mut others = Vec::new();
        for _ in 0..WATCHES_A_MINUTE {
            others.push(world.watch(bookmarked(Some(1))).await);
        }
        assert_eq!(next_item(&mut stays).await, "=1", "in minute {minute}");
        drop(others);
        let scheduled = world.pods.scheduled();
        assert!(scheduled <= 2 * WATCHES_A_MINUTE + 1, "{scheduled} entries");
    }
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(next_item(&mut stays).await, "=1");
    assert_eq!(
        item_now(&mut stays).await,
        None,
        "one for all that were due"
    );
    assert_eq!(next_item(&mut stays).await, "=1");
    assert_eq!(world.pods.watch_count(), 1);
    assert_eq!(world.pods.scheduled(), 1);
}
