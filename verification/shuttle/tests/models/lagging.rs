//! Lists that the store answers because the cache lags: only so many at a time.

use std::pin::pin;

use futures::FutureExt;
use ringwatch_explore::shuttle::{Seen, explore_future};
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::storage::{Interface, StorageError};
use shuttle_tests::sync::Arc;

use crate::informer::Selection;
use crate::store::Store;
use crate::world::{Pace, World};

/// The most lists that are sent to the store at a time because the cache lags.
const LISTS_MAX: usize = 8;

/// The number of clients that list at the same time, at first.
const CLIENTS: usize = LISTS_MAX + 4;

/// The exclusive bound of the times that a client looks for its answer before it goes away.
const LOOKS: usize = 40;

/// Lists the newest state, which the cache does not reach; goes away before the answer, perhaps.
async fn list(world: Arc<World>, seen: Seen, patient: bool) {
    let options = Selection::All.options(None);
    let mut list = pin!(world.pods.get_list("/pods/", options));
    let mut looks = thread_rng().gen_range(1..LOOKS);
    let answer = loop {
        if patient {
            break list.await;
        }
        if let Some(answer) = list.as_mut().now_or_never() {
            break answer;
        }
        looks -= 1;
        if looks == 0 {
            return seen.note("went away");
        }
        yield_now().await;
    };
    match answer {
        Ok(list) => {
            assert_eq!(list.revision, world.store.revision());
            seen.note("from the store");
        }
        Err(StorageError::NotReady { .. }) => seen.note("refused"),
        Err(error) => panic!("{error}"),
    }
}

/// Whoever has been answered, and whoever has gone away, leaves room for another.
#[test]
fn so_many_lists_at_a_time_are_sent_to_the_store() {
    let outcomes = ["from the store", "refused", "went away", "all at a time"];
    explore_future(300, &outcomes, |seen| async move {
        let (world, running) = World::ready(Pace::Quick, Store::of_a_pod()).await;
        world.store.silence(true);
        world.store.write(&[("/pods/d/b", Some("x"))]);
        let clients = |count: usize, seen: &Seen, patient: fn() -> bool| {
            let one = |_| spawn(list(Arc::clone(&world), seen.clone(), patient()));
            (0..count).map(one).collect::<Vec<_>>()
        };
        for client in clients(CLIENTS, &seen, || thread_rng().gen_bool(0.7)) {
            client.await.expect("a client ends");
        }
        let most = world.store.take_lists_at_once();
        assert!(most <= LISTS_MAX, "{most} at a time");
        if most == LISTS_MAX {
            seen.note("all at a time");
        }
        let later = Seen::default();
        for client in clients(LISTS_MAX, &later, || true) {
            client.await.expect("a client ends");
        }
        assert!(!later.has("refused"), "nobody gave a place back");
        running.stop().await;
    });
}
