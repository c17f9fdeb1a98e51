//! Watches: where they begin, what they say, when they end.

use super::*;

#[tokio::test(start_paused = true)]
async fn k49956_a_watch_from_an_empty_window_gets_the_next_event() {
    let script = Arc::new(Script::default());
    script.put("/pods/d/a", "x");
    script.compact();
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    let mut watch = world.watch(since(2)).await;
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_item(&mut watch).await, "+b@3");
    let mut older = world.watch(since(1)).await;
    let ended = "too old resource version: 1 (2) end";
    assert_eq!(next_items(&mut older, 2).await, ended);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_wants_it_sees_what_objects_were_before() {
    let world = World::new(WindowLimits::default()).await;
    let options = ListOptions {
        with_previous: true,
        ..since(1)
    };
    let mut all = world.watch(options.clone()).await;
    let mut some = world.watch(labelled("x", options)).await;
    for app in ["x", "x", "y", "x"] {
        world.script.put("/pods/d/a", app);
    }
    assert_eq!(next_items(&mut all, 4).await, "+a@2 ~a@2-3 ~a@3-4 ~a@4-5");
    assert_eq!(next_items(&mut some, 4).await, "+a@2 ~a@2-3 -a@4 +a@5");
}

/// A cache that lags behind has not reached the version that a client saw. What leaves the window
/// before that version is nothing that the client waits for.
#[tokio::test(start_paused = true)]
async fn a_watch_of_a_later_version_outlives_what_came_before_it() {
    let world = World::new(so_many_events(5)).await;
    let mut watch = world.watch(since(100)).await;
    for number in 2..=103 {
        assert_eq!(world.script.put(&format!("/pods/d/{number}"), "x"), number);
    }
    world.settle().await;
    assert_eq!(
        next_items(&mut watch, 3).await,
        "+101@101 +102@102 +103@103"
    );
}

/// Changes that share a revision come one by one. A watch that has had some of them must not take them for all when the
/// window passes the rest.
#[tokio::test(start_paused = true)]
async fn a_revision_of_several_changes_is_not_cut() {
    let world = World::new(so_many_events(5)).await;
    let mut watch = world.watch(since(1)).await;
    let three = ["/pods/d/a", "/pods/d/b", "/pods/d/c"].map(|key| (key, Some("x")));
    assert_eq!(world.script.together(&three), 2);
    assert_eq!(next_item(&mut watch).await, "+a@2");
    for number in 0..5 {
        world.script.put(&format!("/pods/d/{number}"), "x");
    }
    world.settle().await;
    let ended = "too old resource version: 2 (2) end";
    assert_eq!(next_items(&mut watch, 2).await, ended);
}

#[tokio::test(start_paused = true)]
async fn k73845_events_after_the_state_are_newer_than_the_state() {
    let world = World::new(WindowLimits::default()).await;
    world.put_pods(&["a", "b", "c"]);
    world.settle().await;
    let mut watch = world.watch(streamed(Some(0))).await;
    world.script.put("/pods/d/a", "y");
    world.script.delete("/pods/d/b");
    let expected = "+a@2 +b@3 +c@4 =4! ~a@5 -b@6";
    assert_eq!(next_items(&mut watch, 6).await, expected);
}

/// A watch that began while the cache was filled again must not miss what came in between: each one
/// sees every later change, or ends.
#[tokio::test(start_paused = true)]
async fn k116122_watches_opened_across_a_relist_miss_nothing() {
    let world = World::new(WindowLimits::default()).await;
    let mut watches = Vec::new();
    for round in 0..20_u32 {
        if round % 4 == 2 {
            world.script.lose_history();
        }
        let from = world.script.state().revision;
        if let Ok(watch) = world.pods.watch("/pods/", since(from)).await {
            let first = world.script.put(&format!("/pods/d/p{round}"), "x");
            watches.push((round, first, watch));
        }
        tokio::task::yield_now().await;
    }
    world.settle().await;
    assert!(watches.len() > 5, "some watches began");
    for (round, first, mut watch) in watches {
        let item = item_now(&mut watch).await.expect("an event or an end");
        let event = format!("+p{round}@{first}");
        let ended = item == "end" || item.starts_with("too old");
        assert!(item == event || ended, "{item} instead of {event}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(labelled("x", since(1))).await;
    world.script.put("/pods/d/a", "y");
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/a", "x");
    world.script.put("/pods/d/a", "y");
    world.script.put("/pods/d/a", "x");
    world.script.delete("/pods/d/a");
    assert_eq!(next_items(&mut watch, 3).await, "+a@3 ~a@4 -a@5");
    assert_eq!(next_items(&mut watch, 2).await, "+a@6 -a@7");
}

/// A DELETED event carries the last content that was selected, at the revision of the change.
#[tokio::test(start_paused = true)]
async fn a_deleted_object_has_its_last_content_and_the_revision_of_its_deletion() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let mut watch = world.watch(labelled("x", since(2))).await;
    world.script.put("/pods/d/a", "y");
    let Some(Ok(WatchEvent::Deleted(object))) = watch.next().await else {
        panic!("the object leaves the selection");
    };
    assert_eq!(object.revision(), 3);
    assert_eq!(object.attributes().labels().get("app"), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn k125145_scopes_end_at_a_slash() {
    let world = World::new(WindowLimits::default()).await;
    let scoped = async |key: &str, recursive| {
        let options = ListOptions {
            recursive,
            ..since(1)
        };
        world.pods.watch(key, options).await.expect("ready")
    };
    let mut namespace = scoped("/pods/d", true).await;
    let mut single = scoped("/pods/d/a", false).await;
    for key in ["/pods/dd/a", "/pods/d/ab", "/pods/d/a", "/services/d/a"] {
        world.script.put(key, "x");
    }
    assert_eq!(next_items(&mut namespace, 2).await, "+ab@3 +a@4");
    assert_eq!(item_now(&mut namespace).await, None);
    assert_eq!(next_item(&mut single).await, "+a@4");
    assert_eq!(item_now(&mut single).await, None);
}

/// A client that does not read costs nobody anything, and finds everything when it reads again.
#[tokio::test(start_paused = true)]
async fn k24091_a_slow_watcher_catches_up_and_delays_nobody() {
    let world = World::new(WindowLimits::default()).await;
    let mut slow = world.watch(since(1)).await;
    let mut fast = world.watch(since(1)).await;
    world.script.put("/pods/d/p0", "x");
    assert_eq!(next_item(&mut slow).await, "+p0@2");
    for number in 1..1000 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
    }
    for number in 0..1000 {
        assert_eq!(
            next_item(&mut fast).await,
            format!("+p{number}@{}", number + 2)
        );
    }
    for number in 1..1000 {
        assert_eq!(
            next_item(&mut slow).await,
            format!("+p{number}@{}", number + 2)
        );
    }
    world.script.put("/pods/d/last", "x");
    assert_eq!(next_item(&mut slow).await, "+last@1002");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_the_window_has_passed_is_told_so() {
    let limits = WindowLimits {
        events_max: 200,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    let mut watch = world.watch(since(1)).await;
    world.script.put("/pods/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    for _ in 0..500 {
        world.script.put("/pods/d/a", "x");
    }
    world.settle().await;
    // Events go by segments of twelve, as long as 200 stay.
    let ended = "too old resource version: 2 (301) end";
    assert_eq!(next_items(&mut watch, 2).await, ended);
}

/// The watch's filter selects rarely: its position must not age while nothing concerns it.
#[tokio::test(start_paused = true)]
async fn k68065_a_quiet_watch_does_not_age() {
    let limits = WindowLimits {
        events_max: 200,
        ..WindowLimits::default()
    };
    let world = World::new(limits).await;
    let mut watch = world.watch(labelled("rare", since(1))).await;
    assert_eq!(item_now(&mut watch).await, None);
    for _ in 0..500 {
        world.script.put("/pods/d/a", "common");
    }
    world.settle().await;
    world.script.put("/pods/d/b", "rare");
    assert_eq!(next_item(&mut watch).await, "+b@502");
}

#[tokio::test(start_paused = true)]
async fn etcd20221_a_watch_from_the_future_says_nothing_older() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(bookmarked(Some(4))).await;
    world.put_pods(&["a", "b", "c", "d"]);
    assert_eq!(next_item(&mut watch).await, "+d@5");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_deadline() {
    let world = World::new(WindowLimits::default()).await;
    let begun = world.clock.now();
    let seconds = || (world.clock.now() - begun).as_secs_f64().round();
    let mut options = bookmarked(Some(1));
    options.deadline = Some(begun + Duration::from_secs(100));
    let mut watch = world.watch(options).await;
    let mut plain = world.watch(since(1)).await;
    world.script.put("/pods/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    world.script.put("/services/d/other", "x");
    assert_eq!(next_item(&mut watch).await, "=3");
    assert_eq!(seconds(), 60.0);
    assert_eq!(next_item(&mut watch).await, "=3");
    assert_eq!(seconds(), 98.0);
    assert_eq!(next_item(&mut watch).await, "nothing for an hour");
    assert_eq!(next_item(&mut plain).await, "+a@2");
    assert_eq!(next_item(&mut plain).await, "nothing for an hour");
}

/// A client that is behind gets each bookmark after what that covers.
#[tokio::test(start_paused = true)]
async fn a_bookmark_never_overtakes_an_event() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(bookmarked(Some(1))).await;
    assert_eq!(item_now(&mut watch).await, None);
    for _ in 0..3 {
        world.script.put("/pods/d/a", "x");
        world.clock.sleep(Duration::from_secs(61)).await;
    }
    let expected = "+a@2 =2 ~a@3 =3 ~a@4 =4";
    assert_eq!(next_items(&mut watch, 6).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_state_is_marked_for_those_who_asked() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    world.script.put("/services/d/other", "x");
    world.settle().await;
    // Any version, this version, the newest version.
    for version in [Some(0), Some(2), None] {
        let mut watch = world.watch(streamed(version)).await;
        assert_eq!(next_items(&mut watch, 2).await, "+a@2 =3!", "{version:?}");
        let mut unmarked = streamed(version);
        unmarked.predicate.allow_watch_bookmarks = false;
        let mut watch = world.watch(unmarked).await;
        assert_eq!(next_item(&mut watch).await, "+a@2");
        assert_eq!(item_now(&mut watch).await, None);
        let mut selected = world.watch(labelled("y", streamed(version))).await;
        assert_eq!(next_item(&mut selected).await, "=3!");
    }
    let mut legacy = world.watch(bookmarked(None)).await;
    assert_eq!(next_item(&mut legacy).await, "+a@2");
    assert_eq!(item_now(&mut legacy).await, None);
}

/// A watch of the newest state must not begin with what was there before the newest write.
#[tokio::test(start_paused = true)]
async fn k114845_no_version_is_not_version_zero() {
    let world = World::new(WindowLimits::default()).await;
    world.script.hold();
    world.script.put("/pods/d/a", "x");
    let mut any = world.watch(streamed(Some(0))).await;
    assert_eq!(next_item(&mut any).await, "=1!");
    let release = async {
        world.settle().await;
        world.script.release();
    };
    let (mut newest, ()) = tokio::join!(world.watch(streamed(None)), release);
    assert_eq!(next_items(&mut newest, 2).await, "+a@2 =2!");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_state_begins_where_it_says() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    world.settle().await;
    world.script.hold();
    world.script.put("/pods/d/b", "x");
    let without = |version| ListOptions {
        send_initial_events: Some(false),
        ..streamed(version)
    };
    let mut cached = world.watch(without(Some(0))).await;
    let mut newest = world.watch(without(None)).await;
    world.script.put("/pods/d/c", "x");
    world.script.release();
    assert_eq!(next_items(&mut cached, 2).await, "+b@3 +c@4");
    assert_eq!(next_item(&mut newest).await, "+c@4");
}

#[tokio::test(start_paused = true)]
async fn a_state_newer_than_the_store_is_refused_in_the_stream() {
    let world = World::new(WindowLimits::default()).await;
    let begun = world.clock.now();
    let mut watch = world.watch(streamed(Some(999))).await;
    assert_eq!((world.clock.now() - begun).as_secs(), 3);
    let ended = "Too large resource version: 999, current: 1 end";
    assert_eq!(next_items(&mut watch, 2).await, ended);
}

#[tokio::test(start_paused = true)]
async fn a_drained_watch_ends_after_a_last_bookmark() {
    let world = World::new(WindowLimits::default()).await;
    let mut marked = world.watch(bookmarked(Some(1))).await;
    let mut plain = world.watch(since(1)).await;
    world.script.put("/pods/d/a", "x");
    world.script.put("/services/d/other", "x");
    world.settle().await;
    world.feed.drain();
    assert_eq!(next_items(&mut plain, 2).await, "+a@2 end");
    assert_eq!(next_items(&mut marked, 3).await, "+a@2 =3 end");
    assert!(world.pods.watch("/pods/", since(1)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_drained_watch_that_is_current_gets_the_feeds_revision() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(bookmarked(Some(1))).await;
    world.script.put("/pods/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    world.script.put("/services/d/other", "x");
    assert_eq!(item_now(&mut watch).await, None);
    world.pods.drain();
    assert_eq!(next_items(&mut watch, 2).await, "=3 end");
}

/// Events after the end are not sent, so the last bookmark must not cover them.
#[tokio::test(start_paused = true)]
async fn an_ended_watch_gets_no_more_bookmarks() {
    let world = World::new(WindowLimits::default()).await;
    let mut drained = world.watch(bookmarked(Some(1))).await;
    assert_eq!(item_now(&mut drained).await, None);
    world.feed.drain();
    world.script.put("/pods/d/a", "x");
    world.clock.sleep(Duration::from_secs(61)).await;
    assert_eq!(next_items(&mut drained, 2).await, "=1 end");

    let world = World::new(WindowLimits::default()).await;
    let mut ended = world.watch(bookmarked(Some(1))).await;
    assert_eq!(item_now(&mut ended).await, None);
    world.script.lose_history();
    world.pods.ready().await.expect("listed again");
    world.script.put("/pods/d/a", "x");
    world.clock.sleep(Duration::from_secs(61)).await;
    assert_eq!(next_item(&mut ended).await, "end");
}

#[tokio::test(start_paused = true)]
async fn k38670_a_dropped_watch_leaves_nothing_behind() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let mut watches = Vec::new();
    for version in [Some(0), Some(1), Some(99)] {
        watches.push(world.watch(bookmarked(version)).await);
    }
    let mut refused = world.watch(streamed(Some(99))).await;
    assert_eq!(world.pods.watch_count(), 3);
    assert!(next_item(&mut refused).await.starts_with("Too large"));
    assert_eq!(next_item(&mut watches[0]).await, "+a@2");
    watches.clear();
    assert_eq!(world.pods.watch_count(), 0);
}
