//! Watches while the store is written, its streams break and its history is compacted, and while types are added and
//! the server drains.

use futures::{FutureExt, StreamExt};
use ringwatch_explore::shuttle::{Seen, explore};
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
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

/// Returns a server of pods, a writer, and a client of each selection.
fn start(
    seen: &Seen,
    limits: WindowLimits,
    writes: usize,
    trouble: Trouble,
    slow: bool,
) -> (Arc<World>, Running, Vec<JoinHandle<()>>) {
    start_on(Store::new(), seen, limits, writes, trouble, slow)
}

fn start_on(
    store: Store,
    seen: &Seen,
    limits: WindowLimits,
    writes: usize,
    trouble: Trouble,
    slow: bool,
) -> (Arc<World>, Running, Vec<JoinHandle<()>>) {
    store.write(&changes());
    let (world, running) = World::start(store, limits);
    let tasks = watch_it(&world, seen, writes, trouble, slow);
    (world, running, tasks)
}

/// Returns a writer of a world, and a client of each selection.
fn watch_it(
    world: &Arc<World>,
    seen: &Seen,
    writes: usize,
    trouble: Trouble,
    slow: bool,
) -> Vec<JoinHandle<()>> {
    let mut tasks = vec![spawn(write(Arc::clone(world), writes, trouble))];
    for (number, selection) in Selection::PODS.into_iter().enumerate() {
        let slow = slow && number % 2 == 0;
        let informer = Informer::new(world, seen, selection, slow);
        tasks.push(spawn(informer.run()));
    }
    tasks
}

async fn finish(running: Running, tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("a task ends");
    }
    running.stop().await;
}

fn watch(seen: &Seen, limits: WindowLimits, writes: usize, trouble: Trouble, slow: bool) {
    let seen = seen.clone();
    block_on(async move {
        let (_, running, tasks) = start(&seen, limits, writes, trouble, slow);
        finish(running, tasks).await;
    });
}

#[test]
fn informers_see_every_change_once_and_in_order() {
    explore(600, &["bookmark", "streamed the state"], |seen| {
        watch(seen, WindowLimits::default(), 12, Trouble::None, false);
    });
}

#[test]
fn a_broken_stream_is_resumed_without_a_gap() {
    explore(600, &["bookmark", "streamed the state"], |seen| {
        watch(seen, WindowLimits::default(), 10, Trouble::Breaks, false);
    });
}

#[test]
fn lost_history_is_never_a_gap() {
    explore(
        1000,
        &["ended and resumed", "went away and resumed", "too old"],
        |seen| {
            watch(
                seen,
                WindowLimits::default(),
                8,
                Trouble::LostHistory,
                false,
            );
        },
    );
}

/// The feed's revision goes on with the other types meanwhile, and must not become that of what the type
/// held before.
#[test]
fn a_type_that_is_listed_again_is_never_a_gap() {
    explore(600, &["ended and resumed", "streamed the state"], |seen| {
        watch(seen, WindowLimits::default(), 12, Trouble::Relists, false);
    });
}

/// A change was lost, and what follows cannot be. Nobody is told of that as if nothing were missing.
#[test]
fn a_change_that_cannot_be_is_never_a_gap() {
    explore(600, &["ended and resumed", "too old"], |seen| {
        watch(seen, WindowLimits::default(), 8, Trouble::Impossible, false);
    });
}

/// Nothing may rest on a notice that overtakes changes, so none is requested.
#[test]
fn progress_that_overtakes_changes_hides_none() {
    explore(600, &["streamed the state"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (_, running, tasks) = start_on(
                Store::untrusted(),
                &seen,
                limits,
                10,
                Trouble::Relists,
                false,
            );
            finish(running, tasks).await;
        });
    });
}

/// A server does not trust a member of etcd before that has said its version.
#[test]
fn trust_in_progress_that_comes_late_hides_no_change() {
    explore(600, &["bookmark", "streamed the state"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (world, running, mut tasks) = start_on(
                Store::untrusted(),
                &seen,
                limits,
                10,
                Trouble::Distrust,
                false,
            );
            let server = world.add_type("services");
            let informer = Informer::new(&world, &seen, Selection::Services, false);
            tasks.push(spawn(informer.of(server).run()));
            finish(running, tasks).await;
        });
    });
}

/// The values of some changes can be read only after a while, or not at all; what came after them waits.
#[test]
fn changes_that_wait_for_a_value_keep_their_order() {
    explore(600, &["bookmark", "ended and resumed"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (_, running, tasks) = start_on(
                Store::encrypting(),
                &seen,
                limits,
                12,
                Trouble::Breaks,
                false,
            );
            finish(running, tasks).await;
        });
    });
}

#[test]
fn who_is_too_slow_for_the_window_is_told_so() {
    explore(600, &["bookmark", "too old"], |seen| {
        watch(seen, short_window(), 12, Trouble::Breaks, true);
    });
}

/// More events at once than fit into the channel of a watcher: it reads on in the window.
#[test]
fn an_overflowed_watcher_misses_nothing() {
    explore(100, &["streamed the state"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let trouble = Trouble::None;
            let (world, running, mut tasks) =
                start(&seen, WindowLimits::default(), 3, trouble, true);
            let burst = spawn(async move {
                let keys: Vec<_> = (0..BURST_PODS).map(|it| format!("/pods/d/p{it}")).collect();
                let burst: Vec<_> = keys.iter().map(|key| (&**key, Some("x"))).collect();
                world.store.write(&burst);
            });
            tasks.insert(0, burst);
            finish(running, tasks).await;
        });
    });
}

/// A watcher that stays overflowed over many revisions, and overflows again on its way, reads every one in the window.
#[test]
fn a_watcher_that_is_parked_over_many_revisions_misses_none() {
    explore(60, &["was parked again", "delivered"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (world, running) = World::start_at(Pace::Still, Store::new(), limits);
            world.pods.cacher().ready().await.expect("listed");
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
    explore(100, &["delivered"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (world, running) = World::start_at(Pace::Still, Store::new(), limits);
            world.pods.cacher().ready().await.expect("listed");
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
    });
}

/// A type that is added while its objects change is listed by itself.
fn watch_a_newcomer(seen: &Seen, store: Store) {
    let seen = seen.clone();
    block_on(async move {
        let limits = WindowLimits::default();
        let (world, running, mut tasks) =
            start_on(store, &seen, limits, 10, Trouble::Breaks, false);
        for _ in 0..thread_rng().gen_range(0..20) {
            yield_now().await;
        }
        let server = world.add_type("services");
        let informer = Informer::new(&world, &seen, Selection::Services, false);
        tasks.push(spawn(informer.of(server).run()));
        finish(running, tasks).await;
    });
}

#[test]
fn a_newcomer_misses_nothing() {
    explore(600, &["streamed the state"], |seen| {
        watch_a_newcomer(seen, Store::new());
    });
}

/// All pages of a list are of one revision where the store's progress notices are not to be trusted, however
/// much changes meanwhile.
#[test]
fn a_newcomer_whose_pages_are_of_one_revision_misses_nothing() {
    explore(300, &["streamed the state"], |seen| {
        watch_a_newcomer(seen, Store::untrusted());
    });
}

#[test]
fn a_drain_ends_every_watch_with_a_last_bookmark() {
    explore(2_400, &["a last bookmark"], |seen| {
        let seen = seen.clone();
        block_on(async move {
            let limits = WindowLimits::default();
            let (world, running, tasks) = start(&seen, limits, 10, Trouble::None, true);
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
            finish(running, tasks).await;
        });
    });
}
