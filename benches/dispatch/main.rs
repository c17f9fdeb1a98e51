//! The cost of dispatching events to watchers, without tasks, sockets and stores: the feed is polled by hand and its
//! changes come from a queue.
//!
//! Each figure is processor time and stands beside its floor in the table at the end. What a
//! publish costs without watchers (reading the object, the state, the window) is subtracted where
//! the cost for each watcher is meant. [`peers`] has the channels of the watchers alone, beside others.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]
#![allow(unreachable_pub, reason = "nobody else uses it")]

#[path = "../support/memory.rs"]
mod memory;
mod peers;
#[allow(dead_code, reason = "other benches use the rest")]
#[path = "../support/world.rs"]
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ringwatch::meta::LabelSelector;
use ringwatch::storage::{ListOptions, SelectionPredicate};
use rustix::time::{ClockId, clock_gettime};

use self::memory::resident_bytes;
use self::world::{World, received, since};

/// The number of events that are published before the watchers look; less than a channel holds.
const ROUND_EVENTS: u64 = 16;

/// The number of watchers that have a bookmark due at once.
const SWEPT_WATCHERS: usize = 100_000;

/// Nanoseconds by what was measured, one for each of criterion's samples.
type Samples = RefCell<BTreeMap<String, Vec<f64>>>;

fn dispatch(criterion: &mut Criterion) {
    let samples = Samples::default();
    let resident = resident_bytes_of_idle_watchers();
    publish(criterion, &samples);
    attach(criterion, &samples);
    sweep(criterion, &samples);
    print_table(&samples, resident);
}

/// A publish to watchers that sleep, to watchers that are busy, and to one among many.
fn publish(criterion: &mut Criterion, samples: &Samples) {
    for watchers in [0, 1, 1_000, 10_000] {
        let mut world = World::new(watchers, |_| since(1));
        measure(criterion, samples, &format!("asleep {watchers}"), || {
            let taken = publish_to(&mut world);
            world.receive(1);
            taken
        });
        measure(criterion, samples, &format!("busy {watchers}"), || {
            publish_to(&mut world);
            let further = ROUND_EVENTS as u32 - 1;
            let taken = (0..further)
                .map(|_| publish_to(&mut world))
                .sum::<Duration>()
                / further;
            world.receive(ROUND_EVENTS as usize);
            taken
        });
        if watchers > 1 {
            floors(criterion, samples, &mut world);
        }
    }
    let mut world = World::new(10_000, |number| labelled(number, since(1)));
    measure(criterion, samples, "one of 10000", || {
        let taken = publish_to(&mut world);
        let items = world.watches.iter_mut().take(2).map(received);
        assert_eq!(
            items.collect::<Vec<_>>(),
            [1, 0],
            "only the first receives it"
        );
        taken
    });
}

/// A number for each watcher into a `Vec` of its own: once after the watchers have received something,
/// when the caches hold what they need, and once again and again.
fn floors(criterion: &mut Criterion, samples: &Samples, world: &mut World) {
    let watchers = world.watches.len();
    let mut floor: Vec<Vec<u64>> = vec![Vec::with_capacity(ROUND_EVENTS as usize); watchers];
    let mut push = |events: u32| {
        let taken = timed(|| {
            for number in 0..u64::from(events) {
                floor.iter_mut().for_each(|it| it.push(black_box(number)));
            }
        });
        floor.iter_mut().for_each(Vec::clear);
        taken / events
    };
    measure(
        criterion,
        samples,
        &format!("floor busy {watchers}"),
        || push(ROUND_EVENTS as u32),
    );
    measure(
        criterion,
        samples,
        &format!("floor asleep {watchers}"),
        || {
            publish_to(world);
            world.receive(1);
            push(1)
        },
    );
}

/// A watch that begins and is dropped beside none and beside 10,000 others.
fn attach(criterion: &mut Criterion, samples: &Samples) {
    for watchers in [0, 10_000] {
        let world = World::new(watchers, |_| since(1));
        let options = since(2);
        let name = format!("attach and detach {watchers}");
        measure(criterion, samples, &name, || {
            let options = options.clone();
            let _entered = world.runtime.enter();
            timed(|| drop(black_box(world.attach(options))))
        });
    }
}

/// A minute passes, and every watcher's bookmark is due in the same second.
fn sweep(criterion: &mut Criterion, samples: &Samples) {
    let mut world = World::new(SWEPT_WATCHERS, |_| bookmarked(since(1)));
    measure(criterion, samples, "bookmark sweep", || {
        let minute = tokio::time::advance(Duration::from_secs(61));
        world.runtime.block_on(minute);
        let taken = timed(|| world.turn());
        world.receive(1);
        taken
    });
}

/// Returns the resident bytes of a watcher that waits for an event: its stream, its channel, its place in the index,
/// and the allocator's overhead.
fn resident_bytes_of_idle_watchers() -> usize {
    const WATCHERS: usize = 50_000;
    let mut world = World::new(0, |_| since(1));
    world.watches.reserve_exact(WATCHERS);
    let before = resident_bytes();
    for _ in 0..WATCHERS {
        let watch = world.attach(since(2));
        world.watches.push(watch);
    }
    world.receive(0);
    publish_to(&mut world);
    world.receive(1);
    (resident_bytes() - before) / WATCHERS
}

/// Returns the time that this thread computes for something. What else the machine does is not counted.
fn timed(act: impl FnOnce()) -> Duration {
    let begun = clock_gettime(ClockId::ThreadCPUTime);
    act();
    let ended = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = (ended.tv_sec - begun.tv_sec) * 1_000_000_000 + ended.tv_nsec - begun.tv_nsec;
    Duration::from_nanos(nanoseconds.unsigned_abs())
}

/// Lets criterion measure, and keeps what it reports. A sample is the median of its runs, so that what
/// else the machine does counts as little as it can.
fn measure(
    criterion: &mut Criterion,
    samples: &Samples,
    name: &str,
    mut once: impl FnMut() -> Duration,
) {
    let mut group = criterion.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let mut taken: Vec<Duration> = (0..times).map(|_| once()).collect();
            taken.sort_unstable();
            let median = taken[taken.len() / 2];
            let mut samples = samples.borrow_mut();
            let nanoseconds = median.as_nanos() as f64;
            samples
                .entry(name.to_owned())
                .or_default()
                .push(nanoseconds);
            median * u32::try_from(times).unwrap()
        });
    });
    group.finish();
}

/// The figures as the project states them.
fn print_table(samples: &Samples, resident: usize) {
    let samples = samples.borrow();
    let median = |name: &str| {
        let mut sorted = samples.get(name).cloned().unwrap_or_default();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let each = |name: &str, watchers: u32| {
        let publish = median(&format!("{name} {watchers}")) - median(&format!("{name} 0"));
        publish / f64::from(watchers)
    };
    let floor = |name: &str, watchers: u32| {
        median(&format!("floor {name} {watchers}")) / f64::from(watchers)
    };
    println!("| what | ns | floor, ns | ratio |");
    println!("|---|---|---|---|");
    let row = |what: &str, taken: f64, floor: f64| {
        println!(
            "| {what} | {taken:.1} | {floor:.1} | {:.2} |",
            taken / floor
        );
    };
    for watchers in [1_000, 10_000] {
        for name in ["busy", "asleep"] {
            let what = format!("publish, each of {watchers} watchers, {name}");
            row(&what, each(name, watchers), floor(name, watchers));
        }
    }
    let one = median("asleep 1");
    row("publish to one of 10000", median("one of 10000"), one);
    let (few, many) = (
        median("attach and detach 0"),
        median("attach and detach 10000"),
    );
    row("attach and detach beside 10000", many, few);
    let swept = median("bookmark sweep") / SWEPT_WATCHERS as f64;
    println!("| a sweep of {SWEPT_WATCHERS} bookmarks, each | {swept:.1} | | |");
    println!("| an idle watcher | {resident} bytes | | |");
}

/// Writes the object and lets the feed send it to all watchers. Returns how long that took.
fn publish_to(world: &mut World) -> Duration {
    world.write();
    timed(|| world.turn())
}

fn labelled(number: usize, mut options: ListOptions) -> ListOptions {
    let selector = LabelSelector::parse(&format!("app=w{number}"));
    options.predicate.label = selector.unwrap();
    options
}

fn bookmarked(options: ListOptions) -> ListOptions {
    ListOptions {
        predicate: SelectionPredicate {
            allow_watch_bookmarks: true,
            ..SelectionPredicate::default()
        },
        ..options
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2));
    targets = dispatch, peers::peers
}
criterion_main!(benches);
