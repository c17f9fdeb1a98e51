//! Watches that come and go while nothing happens. They empty the registration queue themselves when it is
//! full, so it stays bounded without a dispatch; `ring::registrations` asserts its length.

use ringwatch_explore::shuttle::explore;
use shuttle::future::block_on;
use shuttle_tests::storage::Interface;
use shuttle_tests::storage::cacher::WindowLimits;

use crate::informer::Selection;
use crate::store::Store;
use crate::world::{Pace, World};

/// More than the queue may ever hold.
const WATCHES: usize = 1_400;

#[test]
fn the_registration_queue_is_bounded_without_a_dispatch() {
    explore(10, &[], |_| {
        block_on(async move {
            let store = Store::new();
            store.write(&[("/pods/d/a", Some("x"))]);
            // No bookmark is due either: the watches are all that happens.
            let limits = WindowLimits::default();
            let (world, running) = World::start_at(Pace::Still, store, limits);
            world.pods.cacher().ready().await.expect("listed");
            let mut watches = Vec::new();
            for _ in 0..WATCHES {
                let options = Selection::All.options(Some(2));
                watches.push(world.pods.watch("/pods/", options).await.expect("ready"));
            }
            drop(watches);
            running.stop().await;
        });
    });
}
