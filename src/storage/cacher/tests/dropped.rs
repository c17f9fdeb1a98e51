//! Reads whose client goes while they wait leave nothing behind.

use ringwatch_testing::dropped::{at_each_wait, dropped_after};

use super::scripted::STORE_REVISION;
use super::*;

/// Whatever it waits for: the store's revision, or a revision that the feed has not reached.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dropped_while_it_begins_leaves_nothing_behind() {
    let after_newest = ListOptions {
        resource_version: None,
        send_initial_events: Some(false),
        ..bookmarked(None)
    };
    for options in [streamed(None), streamed(Some(9)), after_newest] {
        let begun = at_each_wait(async |waits| {
            let world = World::new(WindowLimits::default()).await;
            world.script.hold();
            world.script.put("/pods/d/a", "x");
            let watch = world.delegator.watch("/pods/", options.clone());
            let begun = dropped_after(waits, watch).await;
            if begun.is_none() {
                assert_eq!(world.pods.watch_count(), 0);
                world.script.release();
                let list = world.list(since(2)).await.expect("reached");
                assert_eq!(listed(&list), "2: a");
            }
            begun.map(|it| it.map(drop))
        });
        begun.await.expect("a watch");
    }
}

/// More than may read from the store in place of a cache that lags: each gives its place back.
#[tokio::test(start_paused = true)]
async fn lists_that_are_dropped_keep_no_other_from_the_store() {
    const MANY: usize = 20;
    let list = at_each_wait(async |waits| {
        let world = World::new(WindowLimits::default()).await;
        *world.store.list_time.lock().expect("sound") = Duration::from_secs(1);
        world.script.hold();
        world.script.put("/pods/d/a", "x");
        let mut ended = None;
        for _ in 0..MANY {
            ended = dropped_after(waits, world.list(newest())).await;
        }
        let list = world.list(newest()).await;
        assert_eq!(list.expect("there is a place").revision, STORE_REVISION);
        ended
    });
    assert_eq!(list.await.expect("the store's").revision, STORE_REVISION);
}
