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
    let json = world.pods.cached("/pods/d/a").expect("cached").json().len() as u64;
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
