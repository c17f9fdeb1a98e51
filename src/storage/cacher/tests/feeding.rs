//! The feed: how it begins, breaks, resumes, starts over, grows and ends.

use super::scripted::Decryption;
use super::*;

#[tokio::test(start_paused = true)]
async fn a_break_resumes_without_listing_again() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(since(1)).await;
    for number in 0..20 {
        world.script.put(&format!("/pods/d/p{number}"), "x");
        world.script.break_streams();
        world.script.put(&format!("/pods/d/q{number}"), "x");
        let (p, q) = (2 * number + 2, 2 * number + 3);
        let expected = format!("+p{number}@{p} +q{number}@{q}");
        assert_eq!(next_items(&mut watch, 2).await, expected);
    }
    let state = world.script.state();
    assert_eq!(state.pages, 1);
    assert_eq!(state.follows, 21);
}

/// A store whose streams break at once is not called without pause.
#[tokio::test(start_paused = true)]
async fn k87292_a_store_that_is_away_is_found_again() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(bookmarked(Some(1))).await;
    world.script.state().reachable = false;
    world.script.break_streams();
    world.script.put("/pods/d/a", "x");
    world.clock.sleep(Duration::from_secs(100)).await;
    let follows = world.script.state().follows;
    assert!((10..40).contains(&follows), "{follows} attempts in 100 s");
    assert_eq!(next_item(&mut watch).await, "=1");
    world.script.state().reachable = true;
    assert_eq!(next_item(&mut watch).await, "+a@2");
    assert_eq!(world.script.state().pages, 1);
}

#[tokio::test(start_paused = true)]
async fn lost_history_ends_the_watches_and_lists_again() {
    let world = World::new(WindowLimits::default()).await;
    world.script.put("/pods/d/a", "x");
    let mut watch = world.watch(since(1)).await;
    assert_eq!(next_item(&mut watch).await, "+a@2");
    world.script.hold();
    world.script.put("/pods/d/b", "x");
    world.script.delete("/pods/d/b");
    world.script.lose_history();
    world.script.release();
    assert_eq!(next_item(&mut watch).await, "end");
    world.pods.ready().await.expect("listed");
    let mut again = world.watch(since(2)).await;
    let ended = "too old resource version: 2 (5) end";
    assert_eq!(next_items(&mut again, 2).await, ended);
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!(listed(&list), "5: a");
    let mut watch = world.watch(since(list.revision)).await;
    world.script.put("/pods/d/c", "x");
    assert_eq!(next_item(&mut watch).await, "+c@6");
}

#[tokio::test(start_paused = true)]
async fn types_are_told_apart_by_their_longest_prefix() {
    let world = World::new(WindowLimits::default()).await;
    let add = |resource, prefix| {
        world
            .feed
            .add_type(of_type(resource, prefix, WindowLimits::default()))
    };
    let outer = add("outer", "/services/");
    let specs = add("services", "/services/specs/");
    outer.ready().await.expect("listed");
    specs.ready().await.expect("listed");
    let mut outer = outer.watch("/services/", since(1)).await.expect("ready");
    let mut specs = specs
        .watch("/services/specs/", since(1))
        .await
        .expect("ready");
    world.script.put("/services/specs/d/a", "x");
    world.script.put("/services/other/d/b", "x");
    world.script.put("/unknown/d/c", "x");
    world.script.put("/pods", "x");
    assert_eq!(next_item(&mut specs).await, "+a@2");
    assert_eq!(item_now(&mut specs).await, None);
    assert_eq!(next_item(&mut outer).await, "+b@3");
    assert_eq!(item_now(&mut outer).await, None);
}

#[tokio::test(start_paused = true)]
async fn types_are_listed_in_pages() {
    let script = Arc::new(Script::default());
    for number in 0..20_001 {
        script.put(&format!("/pods/d/{number}"), "x");
    }
    script.compact();
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    assert_eq!(world.script.state().pages, 3);
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!((list.revision, list.items.len()), (20_002, 20_001));
}

#[tokio::test(start_paused = true)]
async fn a_new_feed_remembers_what_its_predecessor_told() {
    let script = Arc::new(Script::default());
    script.put("/pods/d/a", "x");
    script.put("/pods/d/a", "y");
    script.delete("/pods/d/a");
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    let mut watch = world.watch(since(2)).await;
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_items(&mut watch, 3).await, "~a@3 -a@4 +b@5");
}

#[tokio::test(start_paused = true)]
async fn a_new_feed_goes_back_as_far_as_history_reaches() {
    let script = Arc::new(Script::default());
    for number in 0..50 {
        script.put(&format!("/pods/d/{number}"), "x");
        if number == 30 {
            script.compact();
        }
    }
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    let mut watch = world.watch(since(50)).await;
    assert_eq!(next_item(&mut watch).await, "+49@51");
    let mut older = world.watch(since(30)).await;
    assert!(
        next_item(&mut older)
            .await
            .starts_with("too old resource version")
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_served_before_the_newest_state_is_reached() {
    let script = Arc::new(Script::default());
    script.put("/pods/d/a", "x");
    script.put("/pods/d/b", "x");
    script.hold_after(1);
    let world = World::of(script, WindowLimits::default());
    world.clock.sleep(Duration::from_secs(10)).await;
    assert!(
        world.pods.check_ready().is_err(),
        "the state of before a and b"
    );
    world.script.release();
    world.pods.ready().await.expect("caught up");
    let list = world.list(since(0)).await.expect("from memory");
    assert_eq!((list.revision, list.items.len()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_stops_ends_its_watches() {
    let mut world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(since(1)).await;
    drop(world.shutdown.take());
    assert!(world.running.join_next().await.is_some());
    assert_eq!(next_item(&mut watch).await, "end");
    assert!(world.pods.check_ready().is_err());
    assert!(world.pods.ready().await.is_err());
}

/// A feed begins at the newest revision where progress is not to be trusted: nothing would show when the changes since
/// an older revision have come.
#[tokio::test(start_paused = true)]
async fn a_new_feed_begins_at_the_newest_revision_if_progress_is_not_trusted() {
    let script = Arc::new(Script::default());
    script.state().trusted = false;
    script.put("/pods/d/a", "x");
    script.put("/pods/d/a", "y");
    let world = World::of(script, WindowLimits::default());
    world.pods.ready().await.expect("listed");
    let mut watch = world.watch(since(2)).await;
    let item = next_item(&mut watch).await;
    assert!(item.starts_with("too old resource version"), "{item}");
}

/// One type whose values cannot be read keeps no other from being served.
#[tokio::test(start_paused = true)]
async fn a_type_that_cannot_be_listed_at_first_delays_nobody() {
    let script = Arc::new(Script::default());
    script.state().decryption = Decryption::Fails;
    script.put_encrypted("/secrets/d/a", "x");
    script.put("/pods/d/a", "x");
    script.compact();
    let world = World::of(script, WindowLimits::default());
    let secrets = of_type("secrets", "/secrets/", WindowLimits::default());
    let secrets = world.feed.add_type(secrets);
    world.clock.sleep(Duration::from_secs(1)).await;
    world.pods.check_ready().expect("listed");
    assert!(secrets.check_ready().is_err());
}
