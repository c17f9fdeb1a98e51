//! Types that come and go while they are watched.

use futures::StreamExt;
use ringwatch_explore::shuttle::explore_future;
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::storage::cacher::{CacheDelegator, WindowLimits};
use shuttle_tests::storage::{Interface, StorageError};
use shuttle_tests::sync::{Arc, Mutex};

use crate::informer::{Informer, Selection};
use crate::store::Store;
use crate::watching::changes;
use crate::world::{Pace, World};

/// The number of times that the type goes and comes back.
const ROUNDS: usize = 3;

/// The exclusive bound of the times that other tasks go first while the type stays or is gone.
const LOOKS: usize = 20;

/// The number of times that a client tries to watch a type that goes.
const TRIES: usize = 10;

/// The number of clients that try to watch a type that goes.
const CLIENTS: usize = 2;

/// The slot in which clients find the server of a type that comes and goes.
type Present = Arc<Mutex<Arc<CacheDelegator>>>;

async fn wait_a_while() {
    for _ in 0..thread_rng().gen_range(0..LOOKS) {
        yield_now().await;
    }
}

/// Removes the services and adds them again, a few times.
async fn come_and_go(world: Arc<World>, present: Present) {
    for _ in 0..ROUNDS {
        wait_a_while().await;
        let old = Arc::clone(&present.lock().expect("no model panics under the lock"));
        world.feed.remove_type(old.cacher());
        if thread_rng().gen_bool(0.5) {
            wait_a_while().await;
        }
        world.store.write(&changes());
        let new = world.add_type("services");
        *present.lock().expect("no model panics under the lock") = new;
    }
    let last = [("/pods/d/a", Some("x")), ("/services/s/a", Some("x"))];
    world.store.write_last(&last);
}

/// Its clients begin again with its new cache; those of another type notice nothing of it.
#[test]
fn a_type_that_comes_back_is_followed_again() {
    explore_future(
        300,
        &["ended and resumed", "streamed the state"],
        |seen| async move {
            let store = Store::new();
            store.write(&changes());
            let (world, running) = World::start(store, WindowLimits::default());
            let present: Present = Arc::new(Mutex::new(world.add_type("services")));
            let mut tasks = vec![spawn(come_and_go(Arc::clone(&world), Arc::clone(&present)))];
            for _ in 0..2 {
                let informer = Informer::new(&world, &seen, Selection::Services, false);
                tasks.push(spawn(informer.of_present(Arc::clone(&present)).run()));
            }
            let informer = Informer::new(&world, &seen, Selection::All, false);
            tasks.push(spawn(informer.run()));
            running.finish(tasks).await;
        },
    );
}

/// Whoever holds the handle of a type that is gone is refused, and its watches end, also where a new history begins at
/// the same time.
#[test]
fn every_watch_of_a_type_that_is_removed_ends() {
    explore_future(600, &["ended", "refused"], |seen| async move {
        let store = Store::new();
        store.write(&[("/services/s/a", Some("x"))]);
        let limits = WindowLimits::default();
        let (world, running) = World::start_at(Pace::Slow, store, limits);
        let services = world.add_type("services");
        services.cacher().ready().await.expect("listed");
        let mut tasks = Vec::new();
        for _ in 0..CLIENTS {
            let (services, seen) = (Arc::clone(&services), seen.clone());
            tasks.push(spawn(async move {
                for _ in 0..TRIES {
                    let options = Selection::Services.options(Some(0));
                    match services.watch("/services/", options).await {
                        Ok(watch) => {
                            watch.for_each(|_| async {}).await;
                            seen.note("ended");
                        }
                        Err(StorageError::NotReady { .. }) => {
                            // Whether it comes or goes, nobody waits for it for ever.
                            let ready = services.cacher().ready().await;
                            seen.note(if ready.is_ok() { "ready" } else { "refused" });
                        }
                        Err(error) => panic!("{error}"),
                    }
                    yield_now().await;
                }
            }));
        }
        if thread_rng().gen_bool(0.5) {
            let back = Arc::clone(&world);
            tasks.push(spawn(async move { back.store.roll_back(1) }));
        }
        wait_a_while().await;
        world.feed.remove_type(services.cacher());
        running.finish(tasks).await;
    });
}
