//! The watch cache under load: real threads and an optimised engine, for some seconds.
//!
//! Two writers write, dozens of clients of every manner list and watch, streams break, history is
//! lost, the type is listed again. Every client compares each answer with what the store remembers:
//! what a watch delivers is the next change that it selects, nothing is left out or delivered twice, no
//! bookmark overtakes an event, and no read is older than it promises. At the end all watches are
//! drained, each to the last revision, and nothing is left behind: no watcher, no task, no memory.
//!
//! loom and shuttle choose the schedules, of few steps each. Here the machine does, in millions of
//! steps, over the memory and the caches that it has.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the composition root of what it tests"
)]

mod client;
mod store;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwatch::meta::ResourceVersion;
use ringwatch::storage::Interface;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use tokio::task::JoinHandle;

use client::{Client, Manner, Selection};
use store::Label;
use world::World;

/// The number of clients of each manner and selection.
const CLIENTS_OF_EACH: usize = 3;

/// The number of writers, the number of revisions that each writes, the number that it writes at once before it pauses,
/// and the time of a pause.
const WRITERS: usize = 2;
const WRITES_EACH: usize = 40_000;
const WRITES_AT_ONCE: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// The number of keys in a namespace, and the most keys that a revision changes.
const NAMES: usize = 100;
const CHANGES_MAX: usize = 3;

/// The time between two breaks of the streams, and the number of breaks of which one is replaced: history is lost or
/// the type is listed again, which ends all watches. The time is that of the clock, so that however slow the machine
/// is, watches live for longer than a minute and are sent bookmarks.
const TROUBLE_PERIOD: Duration = Duration::from_secs(6);
const BREAKS: usize = 20;

/// Maximum time of all of it: of the writes, until the clients have come to the end, and until the cache has.
const RUN_MAX: Duration = DEADLINE.saturating_mul(3);

#[test]
fn nothing_is_lost_under_load() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .expect("a runtime");
    let over = runtime.block_on(async { tokio::time::timeout(RUN_MAX, run()).await });
    over.expect("somebody waits for what does not come");
}

async fn run() {
    let (world, reflector) = World::new();
    let (shutdown, stopped) = tokio::sync::oneshot::channel::<()>();
    let feed = tokio::spawn(reflector.run(async move {
        let _ = stopped.await;
    }));
    let time = tokio::spawn(Arc::clone(&world).pass_time());
    let clients = clients(&world);
    let writers = (0..WRITERS).map(|number| tokio::spawn(write(Arc::clone(&world), number)));
    let writers: Vec<_> = writers.collect();
    let trouble = tokio::spawn(trouble(Arc::clone(&world)));
    join(writers).await;
    trouble.abort();
    let _ = trouble.await;
    finish(&world, clients).await;

    assert_eq!(world.metric("ringwatch_watchers"), 0);
    assert_eq!(world.metric("ringwatch_parked_watchers"), 0);
    let overflows = world.metric("ringwatch_watcher_parks_total");
    let (changes, seen) = (world.store.place_after(u64::MAX), world.seen.all());
    println!("{changes} changes; channels overflowed {overflows} times; {seen:?}");
    assert!(overflows > 0, "no channel overflowed");
    let must = [
        "bookmark",
        "last bookmark",
        "cut",
        "drained",
        "read its write",
        "too old",
        "went away",
    ];
    for what in must {
        assert!(seen.contains_key(what), "nobody has seen: {what}");
    }

    time.abort();
    let _ = time.await;
    let _ = shutdown.send(());
    feed.await.expect("the feed ends");
    let store = Arc::downgrade(&world.store);
    drop(world);
    assert_eq!(store.strong_count(), 0, "something is left behind");
}

fn clients(world: &Arc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS_OF_EACH {
        for manner in Manner::EACH {
            for selection in Selection::EACH {
                clients.push(tokio::spawn(Client::new(world, selection, manner).run()));
            }
        }
    }
    clients
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("no task fails");
    }
}

/// Waits until every client has received everything, then drains their watches.
async fn finish(world: &Arc<World>, clients: Vec<JoinHandle<()>>) {
    let last = world.store.end();
    let complete = || world.complete.load(Ordering::SeqCst);
    eventually(DEADLINE, "every client receives everything", async || {
        let failed = clients.iter().any(JoinHandle::is_finished);
        failed || complete() == clients.len()
    })
    .await;
    let all = complete() == clients.len();
    // The types may be listed again. It refuses when it takes long, which a loaded machine with a fast clock does.
    eventually(DEADLINE, format!("the cache comes to {last}"), async || {
        let options = Selection::All.options(Some(last));
        world.pods.get_list("/pods/", options).await
    })
    .await;
    world.draining.store(true, Ordering::SeqCst);
    world.feed.drain();
    join(clients).await;
    assert!(all, "not all clients received everything");
}

/// Writes, and reads what it has written now and then.
async fn write(world: Arc<World>, number: usize) {
    for write in 1..=WRITES_EACH {
        let revision = world.store.write(&changes(number));
        if write % WRITES_AT_ONCE != 0 {
            continue;
        }
        tokio::time::sleep(PAUSE).await;
        let (key, mut options) = (Selection::Single.key(), Selection::Single.options(None));
        options.resource_version = Some(ResourceVersion(revision));
        // While the type is listed again nothing is answered.
        if let Ok(list) = world.pods.get_list(key, options).await {
            assert!(list.revision >= revision, "{} < {revision}", list.revision);
            world.seen.note("read its write");
        }
    }
}

/// Returns some keys of a writer's own namespace, or of another type, and their new labels.
fn changes(number: usize) -> Vec<(Arc<str>, Label)> {
    let mut changes: Vec<(Arc<str>, Label)> = Vec::new();
    for _ in 0..rand::random_range(1..=CHANGES_MAX) {
        let resource = ["pods", "pods", "pods", "services"][rand::random_range(0..4)];
        let name = rand::random_range(0..NAMES);
        let key = format!("/{resource}/n{number}/p{name}").into();
        let label = [None, Some("x"), Some("x"), Some("y")][rand::random_range(0..4)];
        if changes.iter().all(|(other, _)| *other != key) {
            changes.push((key, label));
        }
    }
    changes
}

async fn trouble(world: Arc<World>) {
    for number in (0..2 * BREAKS).cycle() {
        world.clock.sleep(TROUBLE_PERIOD).await;
        match number {
            0 => world.store.lose_history(&changes(0)),
            BREAKS => world.feed.relist(world.pods.cacher()),
            _ => world.store.break_streams(),
        }
    }
}
