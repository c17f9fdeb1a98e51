//! The end of a feed, of a history and of a server: no watch hangs on one that is over, and none is
//! resumed in another history.

use futures::StreamExt;
use ringwatch_explore::shuttle::explore_future;
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::storage::cacher::CacheDelegator;
use shuttle_tests::storage::{Interface, StorageError, WatchStream};
use shuttle_tests::sync::Arc;

use crate::informer::{Informer, Selection};
use crate::store::Store;
use crate::watching::changes;
use crate::world::{Pace, Running, World};

/// The number of clients in a model.
const CLIENTS: usize = 3;

/// The number of times that a client looks whether the type can be served.
const LOOKS: usize = 10;

/// The number of writes before the store is put back, the revision to which it is put back, and the number of writes
/// afterwards: so few that no revision of a client is reached again.
const WRITES_BEFORE: usize = 6;
const KEPT: u64 = 2;
const WRITES_AFTER: usize = 2;

/// The most times that a client lists until it sees what it waits for.
const LISTS_MAX: usize = 10_000;

/// Returns a server of a pod at revision 2, where time is too slow for any read to time out.
async fn start() -> (Arc<World>, Running) {
    World::ready(Pace::Slow, Store::of_a_pod()).await
}

/// Opens a watch of everything after a revision.
async fn watch_since(
    server: &CacheDelegator,
    key: &str,
    revision: u64,
) -> Result<WatchStream, StorageError> {
    server
        .watch(key, Selection::All.options(Some(revision)))
        .await
}

/// A watch that begins while the feed stops is ended by the feed, or sees that it must not begin.
#[test]
fn a_watch_that_begins_while_the_feed_stops_does_not_hang() {
    explore_future(600, &["ended", "refused"], |seen| async move {
        let (world, running) = start().await;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (world, seen) = (Arc::clone(&world), seen.clone());
            clients.push(spawn(async move {
                match watch_since(&world.pods, "/pods/", 2).await {
                    Ok(watch) => {
                        watch.for_each(|_| async {}).await;
                        seen.note("ended");
                    }
                    Err(StorageError::NotReady { .. }) => seen.note("refused"),
                    Err(error) => panic!("{error}"),
                }
            }));
        }
        for _ in 0..thread_rng().gen_range(0..LOOKS) {
            yield_now().await;
        }
        running.stop().await;
        for client in clients {
            client.await.expect("a client ends");
        }
    });
}

/// The same revisions mean something else in the next history, so a client must not come back with one of
/// them. One that waits for the type to be ready waits for its next cache.
#[test]
fn a_store_that_is_put_back_tells_its_watches_that_they_are_too_old() {
    explore_future(200, &["too old"], |seen| async move {
        let (world, running) = start().await;
        world.store.write(&[("/pods/d/b", Some("x"))]);
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let watch = watch_since(&world.pods, "/pods/", 2).await;
            let mut watch = watch.expect("ready");
            assert!(matches!(watch.next().await, Some(Ok(_))), "b is delivered");
            let seen = seen.clone();
            clients.push(spawn(async move {
                match watch.next().await {
                    Some(Err(StorageError::WatchExpired)) => seen.note("too old"),
                    other => panic!("instead of an error: {other:?}"),
                }
            }));
        }
        let patient = Arc::clone(&world);
        clients.push(spawn(async move {
            for _ in 0..LOOKS {
                let ready = patient.pods.cacher().ready().await;
                ready.expect("the type of one history or the other");
                yield_now().await;
            }
        }));
        world.store.roll_back(2);
        running.finish(clients).await;
    });
}

/// Clients keep their copies over it: none takes a change of one history for one of the other.
#[test]
fn informers_of_a_store_that_is_put_back_come_to_its_new_history() {
    explore_future(
        300,
        &["put back", "streamed the state"],
        |seen| async move {
            let store = Store::new();
            for _ in 0..WRITES_BEFORE {
                store.write(&changes());
            }
            let (world, running) = World::ready(Pace::Slow, store).await;
            let newest = Selection::All.options(None);
            let list = world.pods.get_list("/pods/", newest).await;
            list.expect("the feed is there");
            let mut clients = Vec::new();
            for selection in Selection::PODS {
                let informer = Informer::new(&world, &seen, selection, false);
                clients.push(spawn(informer.run()));
            }
            for _ in 0..WRITES_AFTER {
                world.store.write(&changes());
                yield_now().await;
            }
            for _ in 0..thread_rng().gen_range(0..LOOKS) {
                yield_now().await;
            }
            world.store.roll_back(KEPT);
            // These may be told of the new history before the cache knows it.
            for selection in Selection::PODS {
                let informer = Informer::new(&world, &seen, selection, false);
                clients.push(spawn(informer.run()));
            }
            for _ in 0..WRITES_AFTER {
                world.store.write(&changes());
                yield_now().await;
            }
            world.store.write_last(&[("/pods/d/a", Some("x"))]);
            running.finish(clients).await;
        },
    );
}

/// A drain meets watches that begin, a type that is added and a store that is put back: whatever comes first, each
/// watch is refused or ends.
#[test]
fn every_watch_that_begins_around_a_drain_ends() {
    explore_future(600, &["ended", "refused"], |seen| async move {
        let (world, running) = start().await;
        let mut tasks = Vec::new();
        for number in 0..CLIENTS {
            let (world, seen) = (Arc::clone(&world), seen.clone());
            tasks.push(spawn(async move {
                let new = (number == 0).then(|| world.add_type("services"));
                let (server, key) = match &new {
                    Some(services) => (services, "/services/"),
                    None => (&world.pods, "/pods/"),
                };
                // Of a type that never becomes ready again, every watch is refused.
                for _ in 0..LOOKS {
                    match watch_since(server, key, 1).await {
                        Ok(watch) => {
                            watch.for_each(|_| async {}).await;
                            seen.note("ended");
                        }
                        Err(StorageError::NotReady { .. }) => seen.note("refused"),
                        Err(error) => panic!("{error}"),
                    }
                    yield_now().await;
                }
            }));
        }
        let back = Arc::clone(&world);
        tasks.push(spawn(async move { back.store.roll_back(1) }));
        let draining = Arc::clone(&world);
        tasks.push(spawn(async move { draining.feed.drain() }));
        running.finish(tasks).await;
    });
}

/// A type that is added just then is of one history or the other, and becomes ready in that which is left.
#[test]
fn a_type_that_is_added_while_the_store_is_put_back_becomes_ready() {
    explore_future(600, &["ready"], |seen| async move {
        let (world, running) = start().await;
        let mut tasks = Vec::new();
        for number in 0..CLIENTS {
            let (world, seen) = (Arc::clone(&world), seen.clone());
            tasks.push(spawn(async move {
                let server = world.add_type(&format!("services{number}"));
                let ready = server.cacher().ready().await;
                ready.expect("the type of one history or the other");
                seen.note("ready");
            }));
        }
        yield_now().await;
        world.store.roll_back(1);
        running.finish(tasks).await;
    });
}

/// A server that has drained its watches takes no new ones, whatever else begins on it.
#[test]
fn a_drained_server_takes_no_watch_of_a_new_type_or_history() {
    explore_future(20, &[], |_| async move {
        let (world, running) = start().await;
        world.feed.drain();
        let services = world.add_type("services");
        services.cacher().ready().await.expect("listed");
        assert_refused(watch_since(&services, "/services/", 2).await);
        world.store.roll_back(1);
        await_revision(&world, 1).await;
        assert_refused(watch_since(&world.pods, "/pods/", 1).await);
        running.stop().await;
    });
}

fn assert_refused(watch: Result<WatchStream, StorageError>) {
    assert!(matches!(watch, Err(StorageError::NotReady { .. })));
}

/// Lists pods until the list is of a revision.
pub(crate) async fn await_revision(world: &World, revision: u64) {
    for _ in 0..LISTS_MAX {
        let options = Selection::All.options(Some(0));
        let list = world.pods.get_list("/pods/", options).await;
        if list.is_ok_and(|list| list.revision == revision) {
            return;
        }
        yield_now().await;
    }
    panic!("no list of {revision}");
}
