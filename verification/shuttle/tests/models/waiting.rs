//! Reads of the newest state, which wait for the store's revision and for the feed to reach it. Both are
//! requested as soon as a read waits: none is forgotten until its deadline.

use ringwatch_explore::shuttle::{Seen, explore_future};
use shuttle::future::{spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::storage::Interface;
use shuttle_tests::sync::Arc;

use crate::ending::await_revision;
use crate::informer::Selection;
use crate::store::Store;
use crate::world::{Pace, World};

/// The number of clients that read at the same time.
const READERS: usize = 2;

/// The number of times that each of these clients reads.
const READS: usize = 3;

/// The probability that the stream breaks before a read, and with it the request for progress of another read.
const BREAKS: f64 = 0.2;

/// No change takes the feed along, so each read depends on its own question and its own request for
/// progress. One that is forgotten gives up at its deadline, and the store answers the list.
#[test]
fn the_newest_state_is_read_from_memory_though_nothing_changes() {
    explore_future(2_400, &["read"], |seen| read(seen, false));
}

/// Readers that wait in a new history of the store get their answers from memory as well.
#[test]
fn the_newest_state_of_the_next_history_is_read_from_memory() {
    explore_future(300, &["read"], |seen| read(seen, true));
}

async fn read(seen: Seen, put_back: bool) {
    let (world, running) = World::ready(Pace::Slow, Store::of_a_pod()).await;
    if put_back {
        world.store.roll_back(1);
        await_revision(&world, 1).await;
    }
    let before = world.store.lists();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (world, seen) = (Arc::clone(&world), seen.clone());
        readers.push(spawn(async move {
            for _ in 0..READS {
                // A revision without a change: something else was written.
                let revision = world.store.write(&[]);
                if thread_rng().gen_bool(BREAKS) {
                    world.store.break_streams();
                }
                let options = Selection::All.options(None);
                let list = world.pods.get_list("/pods/", options).await;
                let list = list.expect("from memory");
                assert!(list.revision >= revision, "{} < {revision}", list.revision);
                assert_eq!(world.store.lists(), before, "it waited in vain");
                seen.note("read");
                yield_now().await;
            }
        }));
    }
    running.finish(readers).await;
}
