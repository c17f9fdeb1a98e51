//! Watches that follow a leader, and take over from it.

use super::*;
use crate::storage::FollowOutcome;

/// Returns a leader that the watch follows.
fn led(watch: &mut WatchStream) -> WatchStream {
    let mut leader = watch.leader().expect("it is live");
    assert_eq!(watch.follow(&mut leader), FollowOutcome::Follows);
    leader
}

/// A watch has nothing to do while others change, and still has not read the window.
#[tokio::test(start_paused = true)]
async fn a_watch_of_little_is_not_passed_by_what_it_does_not_select() {
    let world = World::new(so_many_events(5)).await;
    let mut watch = world.watch(labelled("x", since(1))).await;
    world.script.put("/pods/d/a", "x");
    assert_eq!(next_item(&mut watch).await, "+a@2");
    assert_eq!(item_now(&mut watch).await, None);
    let mut leader = led(&mut watch);
    for _ in 0..2 {
        for number in 0..20 {
            world.script.put(&format!("/pods/d/{number}"), "y");
        }
        world.settle().await;
        assert_eq!(item_now(&mut leader).await, None);
    }
    watch.take_over(&leader);
    // Its client does not read for a while.
    for number in 0..20 {
        world.script.put(&format!("/pods/d/{number}"), "y");
    }
    world.settle().await;
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_item(&mut watch).await, "+b@63");
}

#[tokio::test(start_paused = true)]
async fn a_watch_follows_only_where_it_has_delivered_as_much_as_the_leader() {
    let world = World::new(WindowLimits::default()).await;
    let mut ahead = world.watch(since(1)).await;
    let mut behind = world.watch(since(1)).await;
    assert_eq!(item_now(&mut ahead).await, None);
    assert_eq!(item_now(&mut behind).await, None);
    world.script.put("/pods/d/a", "x");
    assert_eq!(next_item(&mut ahead).await, "+a@2");
    let mut leader = led(&mut ahead);
    assert_eq!(behind.follow(&mut leader), FollowOutcome::NotLevel);
    assert_eq!(next_item(&mut behind).await, "+a@2");
    assert_eq!(behind.follow(&mut leader), FollowOutcome::Follows);
    let mut other = world.watch(labelled("x", since(2))).await;
    assert_eq!(item_now(&mut other).await, None);
    assert_eq!(other.follow(&mut leader), FollowOutcome::Unlike);
    world.script.put("/pods/d/b", "x");
    assert_eq!(next_item(&mut leader).await, "+b@3");
    assert_eq!(item_now(&mut behind).await, None, "the leader has it");
}

/// The leader has a bookmark to deliver that is older than the one that the watch has got.
#[tokio::test(start_paused = true)]
async fn a_bookmark_of_the_leader_does_not_go_back() {
    let world = World::new(WindowLimits::default()).await;
    let mut first = world.watch(bookmarked(Some(1))).await;
    let mut second = world.watch(bookmarked(Some(1))).await;
    assert_eq!(item_now(&mut first).await, None);
    assert_eq!(item_now(&mut second).await, None);
    let mut leader = led(&mut first);
    world.clock.sleep(Duration::from_secs(5)).await;
    // Nobody reads the leader's bookmark of revision 1. What is not of the type raises the revision.
    world.script.put("/services/d/s", "x");
    assert_eq!(next_item(&mut second).await, "=2");
    assert_eq!(second.follow(&mut leader), FollowOutcome::Follows);
    assert_eq!(next_item(&mut leader).await, "=2");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_as_its_leader_does() {
    let world = World::new(WindowLimits::default()).await;
    let mut watch = world.watch(since(1)).await;
    assert_eq!(item_now(&mut watch).await, None);
    let mut leader = led(&mut watch);
    world.script.lose_history();
    world.settle().await;
    world.pods.ready().await.expect("listed again");
    assert_eq!(next_item(&mut leader).await, "end");
    watch.take_over(&leader);
    assert_eq!(next_item(&mut watch).await, "end");
}
