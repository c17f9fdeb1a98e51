//! Readiness: what is served while a type is filled, and that filling it anew misses nothing.

use std::collections::BTreeSet;

use ringwatch_testing::eventually::DEADLINE;

use super::*;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// The number of times that the history is lost under the watches.
const LOSSES: u64 = 40;

/// The number of tasks that open watches meanwhile.
const OPENERS: u64 = 4;

/// The messages between the openers and their test.
#[derive(Default)]
struct Openers {
    /// The number of watches that are open.
    open: AtomicUsize,
    /// True when no more are to be opened.
    done: AtomicBool,
}

/// The result of one watch: its first revision, the revisions that it delivered, and its end.
type Seen = (u64, Vec<u64>, String);

/// k#116122: a watch that was opened while the cache was being filled again could pass the check for
/// readiness before the filling and be taken in after it. It then stood behind changes that it was
/// never sent, and stayed open. So watches are opened by several threads without pause while the
/// history is lost again and again: each is refused, or ends, or is sent every change after the one
/// it began with, in order and without a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn k116122_watches_opened_while_the_cache_is_filled_anew_miss_nothing() {
    let world = Arc::new(World::new(WindowLimits::default()).await);
    let progress = Arc::new(Openers::default());
    let mut openers = JoinSet::new();
    for _ in 0..OPENERS {
        openers.spawn(open_watches(Arc::clone(&world), Arc::clone(&progress)));
    }
    let mut written = BTreeSet::new();
    for round in 0..LOSSES {
        for number in 0..3 {
            written.insert(world.script.put(&format!("/pods/d/{round}-{number}"), "x"));
            tokio::task::yield_now().await;
        }
        until(|| progress.open.load(Ordering::SeqCst) > 0).await;
        let pages = world.script.state().pages;
        world.script.lose_history();
        written.insert(world.script.put(&format!("/pods/d/{round}"), "x"));
        until(|| world.script.state().pages > pages).await;
        let ready = tokio::time::timeout(DEADLINE, world.pods.ready());
        ready.await.expect("in time").expect("listed");
    }
    progress.done.store(true, Ordering::SeqCst);
    world.feed.drain();
    let (mut opened, mut delivered) = (0, 0);
    while let Some(seen) = openers.join_next().await {
        for (from, revisions, end) in seen.expect("no panic") {
            opened += 1;
            delivered += revisions.len();
            let after: Vec<u64> = written.range(from + 1..).copied().collect();
            let prefix = &after[..revisions.len().min(after.len())];
            assert_eq!(revisions, prefix, "since {from}, ended with {end:?}");
        }
    }
    assert!(opened >= LOSSES, "only {opened} watches were opened");
    assert!(delivered > 0, "no watch delivered anything");
}

/// Opens a watch after the newest revision, reads it to its end, and begins again.
async fn open_watches(world: Arc<World>, openers: Arc<Openers>) -> Vec<Seen> {
    let mut seen = Vec::new();
    while !openers.done.load(Ordering::SeqCst) {
        let from = world.script.state().revision;
        let Ok(mut watch) = world.pods.watch("/pods/", since(from)).await else {
            tokio::task::yield_now().await;
            continue;
        };
        openers.open.fetch_add(1, Ordering::SeqCst);
        let mut revisions = Vec::new();
        let end = loop {
            match watch.next().await {
                Some(Ok(event)) => revisions.extend(revision_of(&event)),
                Some(Err(error)) => break error.to_string(),
                None => break String::new(),
            }
        };
        openers.open.fetch_sub(1, Ordering::SeqCst);
        seen.push((from, revisions, end));
    }
    seen
}

/// Waits for a condition without a pause, so that what happens then meets everything else.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.expect("in time");
}

fn revision_of(event: &WatchEvent) -> Option<u64> {
    match event {
        WatchEvent::Added(object)
        | WatchEvent::Modified(object)
        | WatchEvent::Replaced { object, .. }
        | WatchEvent::Deleted(object) => Some(object.revision()),
        WatchEvent::Bookmark { .. } => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_learns_what_keeps_a_type_from_being_served() {
    let script = Arc::new(Script::default());
    script.put("/pods/d/a", "x");
    script.state().reachable = false;
    script.hold_after(1);
    let world = World::of(script, WindowLimits::default());
    world.clock.sleep(Duration::from_secs(5)).await;
    let complaint = world.pods.complaint().expect("not listed");
    assert!(
        complaint.starts_with("pods: listing, 0 objects so far, not ready for 5 s: "),
        "{complaint}"
    );
    world.script.state().reachable = true;
    world.clock.sleep(Duration::from_secs(20)).await;
    assert!(!world.pods.has_been_ready());
    let complaint = world.pods.complaint().expect("not caught up");
    assert!(
        complaint.starts_with("pods: catching up since revision 1, at 1 of 2, not ready for 25 s"),
        "{complaint}"
    );
    world.script.release();
    world.pods.ready().await.expect("caught up");
    assert_eq!(world.pods.complaint(), None);
    assert!(world.pods.has_been_ready());
    world.script.lose_history();
    world.script.state().reachable = false;
    world.clock.sleep(Duration::from_secs(2)).await;
    let complaint = world.pods.complaint().expect("being listed again");
    assert!(complaint.contains("not ready for 2 s"), "{complaint}");
    assert!(world.pods.has_been_ready(), "it was");
    world.script.state().reachable = true;
    world.script.state().hung = Some("/pods/".to_owned());
    world.script.roll_back(1);
    world.clock.sleep(Duration::from_secs(30)).await;
    assert!(world.pods.complaint().is_some());
    assert!(world.pods.has_been_ready(), "in another history");
}
