//! Watches that come and go while nothing happens. They empty the registration queue themselves when it is
//! full, so it stays bounded without a dispatch; `ring::registrations` asserts its length.

use ringwatch_explore::shuttle::explore_future;
use shuttle_tests::storage::Interface;

use crate::informer::Selection;
use crate::store::Store;
use crate::world::{Pace, World};

/// More than the queue may ever hold.
const WATCHES: usize = 1_400;

#[test]
fn the_registration_queue_is_bounded_without_a_dispatch() {
    explore_future(10, &[], |_| async move {
        // No bookmark is due either: the watches are all that happens.
        let (world, running) = World::ready(Pace::Still, Store::of_a_pod()).await;
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            let options = Selection::All.options(Some(2));
            watches.push(world.pods.watch("/pods/", options).await.expect("ready"));
        }
        drop(watches);
        running.stop().await;
    });
}
