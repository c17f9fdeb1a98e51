//! Watches while the store is written, its streams break and its history is compacted, and while types are added and
//! the server drains.

use futures::{FutureExt, StreamExt};
use ringwatch_explore::shuttle::{Seen, explore_future};
use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::meta::WatchEvent;
use shuttle_tests::storage::cacher::WindowLimits;
use shuttle_tests::storage::{Interface, StorageError};
use shuttle_tests::sync::{Arc, Ordering};

use crate::informer::{Informer, Selection, key_of};
use crate::store::{Label, Store};
use crate::world::{Pace, Running, World};

const KEYS: [&str; 6] = [
    "/pods/d/a",
    "/pods/d/b",
    "/pods/e/a",
    "/pods/e/b",
    "/services/s/a",
    "/services/s/b",
];

/// More events than the channel of a watcher holds, so that it overflows.
const BURST_PODS: usize = 120;

/// The number of bursts of revisions for which a watcher is left alone, the number of revisions in each, and the
/// exclusive bound of the items that it reads between two of them.
const BURSTS: usize = 4;
const BURST_REVISIONS: usize = 40;
const READ_BETWEEN_MAX: usize = 60;

/// The disturbance of the store beside the writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Streams break.
    Breaks,
    /// Changes are compacted before they are sent.
    LostHistory,
    /// The type is listed again, alone.
    Relists,
    /// Changes come that contradict what is known.
    Impossible,
    /// Progress notices overtake changes, until they do not any more.
    Distrust,
}

/// Returns limits of a window with so little history that a slow client falls out of it.
fn short_window() -> WindowLimits {
    WindowLimits {
        events_min: 2,
        events_max: 4,
        ..WindowLimits::default()
    }
}

/// Changes of one to three keys in one revision.
pub(crate) fn changes() -> Vec<(&'static str, Label)> {
    let mut random = thread_rng();
    let mut changes: Vec<(&str, Label)> = Vec::new();
    for _ in 0..random.gen_range(1..=3) {
        let key = KEYS[random.gen_range(0..KEYS.len())];
        let label = [None, Some("x"), Some("x"), Some("y")][random.gen_range(0..4)];
        if changes.iter().all(|(other, _)| *other != key) {
            changes.push((key, label));
        }
    }
    changes
}

/// Writes so often, and at last something that every selection sees.
pub(crate) async fn write(world: Arc<World>, writes: usize, trouble: Trouble) {
    for _ in 0..writes {
        let now = thread_rng().gen_bool(0.3);
        match trouble {
            Trouble::Breaks if now => world.store.break_streams(),
            Trouble::LostHistory if now => world.store.write_and_compact(&changes()),
            Trouble::Relists if now => world.feed.relist(world.pods.cacher()),
            Trouble::Impossible if now => world.store.write_impossible("/pods/d/b"),
            Trouble::Distrust if now => world.store.trust_progress(),
            _ => {}
        }
        world.store.write(&changes());
        yield_now().await;
    }
    let last = [("/pods/d/a", Some("x")), ("/services/s/a", Some("x"))];
    world.store.write_last(&last);
}

/// Returns a server of pods, a writer, and a quick client of each selection.
fn start(
    seen: &Seen,
    store: Store,
    writes: usize,
    trouble: Trouble,
) -> (Arc<World>, Running, Vec<JoinHandle<()>>) {
    start_within(WindowLimits::default(), seen, store, writes, trouble, false)
}

/// The same with other windows; every second client may be slow.
fn start_within(
    limits: WindowLimits,
    seen: &Seen,
    store: Store,
    writes: usize,
    trouble: Trouble,
    slow: bool,
) -> (Arc<World>, Running, Vec<JoinHandle<()>>) {
    store.write(&changes());
    let (world, running) = World::start(store, limits);
    let mut tasks = vec![spawn(write(Arc::clone(&world), writes, trouble))];
    for (number, selection) in Selection::PODS.into_iter().enumerate() {
        let slow = slow && number % 2 == 0;
        let informer = Informer::new(&world, seen, selection, slow);
        tasks.push(spawn(informer.run()));
    }
    (world, running, tasks)
}

async fn watch(seen: Seen, store: Store, writes: usize, trouble: Trouble) {
    let (_, running, tasks) = start(&seen, store, writes, trouble);
    running.finish(tasks).await;
}

#[test]
fn informers_see_every_change_once_and_in_order() {
    let outcomes = ["bookmark", "streamed the state", "took over"];
    explore_future(600, &outcomes, |seen| {
        watch(seen, Store::new(), 12, Trouble::None)
    });
}

#[test]
fn a_broken_stream_is_resumed_without_a_gap() {
    explore_future(600, &["bookmark", "streamed the state"], |seen| {
        watch(seen, Store::new(), 10, Trouble::Breaks)
    });
}

#[test]
fn lost_history_is_never_a_gap() {
    let outcomes = ["ended and resumed", "went away and resumed", "too old"];
    explore_future(1000, &outcomes, |seen| {
        watch(seen, Store::new(), 8, Trouble::LostHistory)
    });
}

/// The feed's revision goes on with the other types meanwhile, and must not become that of what the type
/// held before.
#[test]
fn a_type_that_is_listed_again_is_never_a_gap() {
    explore_future(600, &["ended and resumed", "streamed the state"], |seen| {
        watch(seen, Store::new(), 12, Trouble::Relists)
    });
}

/// A change was lost, and what follows cannot be. Nobody is told of that as if nothing were missing.
#[test]
fn a_change_that_cannot_be_is_never_a_gap() {
    explore_future(600, &["ended and resumed", "too old"], |seen| {
        watch(seen, Store::new(), 8, Trouble::Impossible)
    });
}

/// Nothing may rest on a notice that overtakes changes, so none is requested.
#[test]
fn progress_that_overtakes_changes_hides_none() {
    explore_future(600, &["streamed the state"], |seen| {
        watch(seen, Store::untrusted(), 10, Trouble::Relists)
    });
}

/// A server does not trust a member of etcd before that has said its version.
#[test]
fn trust_in_progress_that_comes_late_hides_no_change() {
    let outcomes = ["bookmark", "streamed the state"];
    explore_future(600, &outcomes, |seen| async move {
        let store = Store::untrusted();
        let (world, running, mut tasks) = start(&seen, store, 10, Trouble::Distrust);
        let server = world.add_type("services");
        let informer = Informer::new(&world, &seen, Selection::Services, false);
        tasks.push(spawn(informer.of(server).run()));
        running.finish(tasks).await;
    });
}

/// The values of some changes can be read only after a while, or not at all; what came after them waits.
#[test]
fn changes_that_wait_for_a_value_keep_their_order() {
    explore_future(600, &["bookmark", "ended and resumed"], |seen| {
        watch(seen, Store::encrypting(), 12, Trouble::Breaks)
    });
}

#[test]
fn who_is_too_slow_for_the_window_is_told_so() {
    explore_future(600, &["bookmark", "too old"], |seen| async move {
        let (store, trouble) = (Store::new(), Trouble::Breaks);
        let (_, running, tasks) = start_within(short_window(), &seen, store, 12, trouble, true);
        running.finish(tasks).await;
    });
}

/// More events at once than fit into the channel of a watcher: it reads on in the window.
#[test]
fn an_overflowed_watcher_misses_nothing() {
    explore_future(100, &["streamed the state"], |seen| async move {
        let (limits, store) = (WindowLimits::default(), Store::new());
        let (world, running, mut tasks) =
            start_within(limits, &seen, store, 3, Trouble::None, true);
        let burst = spawn(async move {
            let keys: Vec<_> = (0..BURST_PODS).map(|it| format!("/pods/d/p{it}")).collect();
            let burst: Vec<_> = keys.iter().map(|key| (&**key, Some("x"))).collect();
            world.store.write(&burst);
        });
        tasks.insert(0, burst);
        running.finish(tasks).await;
    });
}

/// A watcher that stays overflowed over many revisions, and overflows again on its way, reads every one in the window.
#[test]
fn a_watcher_that_is_parked_over_many_revisions_misses_none() {
    explore_future(60, &["was parked again", "delivered"], |seen| async move {
        let (world, running) = World::ready(Pace::Still, Store::new()).await;
        let options = Selection::All.options(Some(world.store.revision()));
        let mut watch = world.pods.watch("/pods/", options).await.expect("ready");
        let mut keys = Vec::new();
        let mut delivered = 0;
        for burst in 0..BURSTS {
            let (store, writer) = (Arc::clone(&world), burst * BURST_REVISIONS);
            let new = (writer..writer + BURST_REVISIONS).map(|it| format!("/pods/d/p{it}"));
            let new: Vec<_> = new.collect();
            keys.extend(new.iter().cloned());
            let writing = spawn(async move {
                for key in &new {
                    store.store.write(&[(key, Some("x"))]);
                }
            });
            for _ in 0..thread_rng().gen_range(0..READ_BETWEEN_MAX) {
                let Some(item) = watch.next().now_or_never() else {
                    yield_now().await;
                    continue;
                };
                assert_added(item, &keys[delivered]);
                delivered += 1;
            }
            writing.await.expect("a task ends");
            if delivered > 0 && keys.len() - delivered > BURST_REVISIONS {
                seen.note("was parked again");
            }
        }
        for key in &keys[delivered..] {
            assert_added(watch.next().await, key);
        }
        assert!(watch.next().now_or_never().is_none(), "nothing is left");
        seen.note("delivered");
        running.stop().await;
    });
}

fn assert_added(item: Option<Result<WatchEvent, StorageError>>, key: &str) {
    let Some(Ok(WatchEvent::Added(object))) = item else {
        panic!("{key} was added, not {item:?}");
    };
    assert_eq!(key_of(&object), key);
}

/// A burst between a watcher's resumption and its next look fills its channel again. By the time that it
/// finds its channel full, it has read more of the window than was signalled to it.
#[test]
fn a_burst_that_overflows_a_watcher_again_is_told_once() {
    explore_future(100, &["delivered"], |seen| async move {
        let (world, running) = World::ready(Pace::Still, Store::new()).await;
        let from = world.store.revision();
        let options = Selection::All.options(Some(from));
        let mut watch = world.pods.watch("/pods/", options).await.expect("ready");
        // Its budget may end behind its resumption.
        assert!(watch.next().now_or_never().is_none(), "nothing happened");
        let keys: Vec<_> = (0..BURST_PODS).map(|it| format!("/pods/d/p{it}")).collect();
        let burst: Vec<_> = keys.iter().map(|key| (&**key, Some("x"))).collect();
        let burst = world.store.write(&burst);
        // A list of the burst's revision waits until all of it has been sent.
        let options = Selection::All.options(Some(burst));
        let list = world.pods.get_list("/pods/", options).await;
        assert_eq!(list.expect("reached").items.len(), BURST_PODS);
        world.store.write(&[("/pods/d/last", Some("x"))]);
        for key in keys.iter().map(String::as_str).chain(["/pods/d/last"]) {
            assert_added(watch.next().await, key);
        }
        seen.note("delivered");
        running.stop().await;
    });
}

/// A type that is added while its objects change is listed by itself.
async fn watch_a_newcomer(seen: Seen, store: Store) {
    let (world, running, mut tasks) = start(&seen, store, 10, Trouble::Breaks);
    for _ in 0..thread_rng().gen_range(0..20) {
        yield_now().await;
    }
    let server = world.add_type("services");
    let informer = Informer::new(&world, &seen, Selection::Services, false);
    tasks.push(spawn(informer.of(server).run()));
    running.finish(tasks).await;
}

#[test]
fn a_newcomer_misses_nothing() {
    explore_future(600, &["streamed the state"], |seen| {
        watch_a_newcomer(seen, Store::new())
    });
}

/// All pages of a list are of one revision where the store's progress notices are not to be trusted, however
/// much changes meanwhile.
#[test]
fn a_newcomer_whose_pages_are_of_one_revision_misses_nothing() {
    explore_future(300, &["streamed the state"], |seen| {
        watch_a_newcomer(seen, Store::untrusted())
    });
}

#[test]
fn a_drain_ends_every_watch_with_a_last_bookmark() {
    explore_future(2_400, &["a last bookmark"], |seen| async move {
        let (limits, store) = (WindowLimits::default(), Store::new());
        let (world, running, tasks) = start_within(limits, &seen, store, 10, Trouble::None, true);
        world.pods.cacher().ready().await.expect("listed");
        for _ in 0..thread_rng().gen_range(0..60) {
            yield_now().await;
        }
        let options = Selection::All.options(Some(0));
        let list = world.pods.get_list("/pods/", options).await;
        let reached = usize::try_from(list.expect("as it is").revision);
        world
            .drained
            .store(reached.expect("a small number"), Ordering::SeqCst);
        world.feed.drain();
        running.finish(tasks).await;
    });
}
