//! The cost of the window for its readers and its writer, beside that of a plain `Vec` of the same events: the segment
//! log of `ringwatch::ring`. Its peers are a ring whose slots are overwritten in place, and bounded channels of
//! crossbeam, one for each reader.
#![allow(
    clippy::disallowed_types,
    reason = "a bench is no part of what the models look at"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a bench reads the time of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ringwatch::ring::log::{Log, Slot, Writer, log};

/// The number of events that the window holds while it is read.
const EVENTS: u64 = 10_000;

/// The number of events in the largest window, the one that is searched.
const EVENTS_MAX: u64 = 102_400;

/// The number of positions that each reader thread keeps.
const CURSORS: u64 = 100;

/// The numbers of events by which a position moves on at a time.
///
/// One, as a watcher to which an event was signalled; or as many as it looks at before others have their
/// turn, when it catches up.
const TURNS: [u64; 2] = [1, 100];

/// An event, as large as the cache's record of one.
#[derive(Debug)]
struct Event {
    revision: u64,
    _record: [u64; 15],
}

type Events = Vec<Arc<Event>>;
type EventWriter = Writer<Arc<Event>, u64>;
type EventLog = Log<Arc<Event>, u64>;

fn event(revision: u64) -> Arc<Event> {
    Arc::new(Event {
        revision,
        _record: [revision; 15],
    })
}

fn window(events: u64) -> (EventWriter, EventLog, Events) {
    let (mut writer, log) = log(0);
    let events: Events = (0..events).map(event).collect();
    for event in &events {
        writer.append(Arc::clone(event));
        writer.publish();
    }
    (writer, log, events)
}

/// Moves each of a thread's positions on by a turn. Returns a sum, so that nothing is left out.
trait Read: Sync {
    fn turn(&self, cursor: u64, turn: u64) -> u64;
}

impl Read for EventLog {
    /// Reads on in the window as a watcher does.
    fn turn(&self, cursor: u64, turn: u64) -> u64 {
        let reader = self.read();
        if turn == 1 {
            // As a watcher reads a signalled event.
            return match reader.slot(cursor) {
                Slot::Value(event) => event.revision,
                Slot::Future | Slot::Gone => panic!("it is there"),
            };
        }
        let values = reader.values(cursor).take(turn as usize);
        values.map(|event| event.revision).sum()
    }
}

impl Read for Events {
    fn turn(&self, cursor: u64, turn: u64) -> u64 {
        let events = self.iter().skip(cursor as usize).take(turn as usize);
        events.map(|event| event.revision).sum()
    }
}

/// A ring whose slots are overwritten in place: the slot of a number is the number modulo the capacity. Its readers
/// compare the revision that they find, since the slot may be another event's by then.
struct OverwritingRing(Vec<ArcSwapOption<Event>>);

impl OverwritingRing {
    fn new(capacity: u64) -> Self {
        Self((0..capacity).map(|_| ArcSwapOption::empty()).collect())
    }

    fn slot(&self, number: u64) -> &ArcSwapOption<Event> {
        &self.0[number as usize % self.0.len()]
    }

    fn append(&self, event: Arc<Event>) {
        self.slot(event.revision).store(Some(event));
    }
}

impl Read for OverwritingRing {
    fn turn(&self, cursor: u64, turn: u64) -> u64 {
        let revision = |number: u64| {
            let found = self.slot(number).load();
            let event = found.as_ref().filter(|event| event.revision == number);
            event.expect("it is there").revision
        };
        (cursor..cursor + turn).map(revision).sum()
    }
}

/// Returns the numbers of threads that read at once: one, two, and as many as the machine runs.
fn thread_counts() -> Vec<u64> {
    let all = thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut counts = vec![1, 2, all];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns how long it takes threads to move all of their positions on so many times.
fn walk(read: &impl Read, threads: u64, turn: u64, times: u64) -> Duration {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut cursors: Vec<u64> =
                        (0..CURSORS).map(|it| it * EVENTS / CURSORS).collect();
                    barrier.wait();
                    let begun = Instant::now();
                    for _ in 0..times {
                        for cursor in &mut cursors {
                            black_box(read.turn(*cursor, turn));
                            *cursor += turn;
                            if *cursor + turn > EVENTS {
                                *cursor = 0;
                            }
                        }
                    }
                    begun.elapsed()
                })
            })
            .collect();
        readers.into_iter().map(|it| it.join().unwrap()).max()
    })
    .unwrap()
}

fn read(criterion: &mut Criterion) {
    let (_writer, log, events) = window(EVENTS);
    let ring = OverwritingRing::new(EVENTS);
    events
        .iter()
        .for_each(|event| ring.append(Arc::clone(event)));
    for turn in TURNS {
        let mut group = criterion.benchmark_group(format!("window read, {turn} events a turn"));
        for threads in thread_counts() {
            // What one thread reads; the threads read at the same time.
            group.throughput(Throughput::Elements(CURSORS * turn));
            let floor = BenchmarkId::new("floor: Vec<Arc>, threads", threads);
            group.bench_function(floor, |bencher| {
                bencher.iter_custom(|times| walk(&events, threads, turn, times));
            });
            group.bench_function(BenchmarkId::new("log, threads", threads), |bencher| {
                bencher.iter_custom(|times| walk(&log, threads, turn, times));
            });
            let peer = BenchmarkId::new("peer: overwriting ring, threads", threads);
            group.bench_function(peer, |bencher| {
                bencher.iter_custom(|times| walk(&ring, threads, turn, times));
            });
        }
        group.finish();
    }
}

/// Reads the newest event while another thread appends, publishes and evicts as fast as it can: where the end and the
/// directory share a cache line with each other, each append takes it from the reader.
fn read_beside_a_writer(criterion: &mut Criterion) {
    let (mut writer, log, events) = window(EVENTS);
    let stopped = AtomicBool::new(false);
    let mut group = criterion.benchmark_group("window newest event");
    group.bench_function("log, nobody writes", |bencher| {
        bencher.iter(|| newest(&log));
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: nothing is published by it but the end of the bench.
            while !stopped.load(Ordering::Relaxed) {
                for event in &events {
                    append_and_evict(&mut writer, event);
                }
            }
        });
        // Dropped after a panic too: the scope waits for the writer before it passes one on.
        let _stop = StopWhenDropped(&stopped);
        group.bench_function("log, beside a writer", |bencher| {
            bencher.iter(|| newest(&log));
        });
    });
    group.finish();
}

/// Stops a writer when it is dropped.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn newest(log: &EventLog) -> u64 {
    let reader = log.read();
    match reader.slot(reader.end() - 1) {
        Slot::Value(event) => event.revision,
        Slot::Future | Slot::Gone => panic!("the newest is never evicted"),
    }
}

/// Appends and publishes an event; evicts a segment when it began one, so that as many are kept as there were.
fn append_and_evict(writer: &mut EventWriter, event: &Arc<Event>) {
    let began = writer.append(Arc::clone(event));
    writer.publish();
    if began {
        let base = writer.last_of(1).unwrap().revision;
        drop(writer.evict(1, base));
    }
}

/// Events through bounded channels of crossbeam, one for each reader: the writer sends each event to every reader,
/// which is on a thread of its own and takes all of them. The writer waits for readers whose channel is full.
fn channels(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("window peer: bounded channels of crossbeam");
    group.throughput(Throughput::Elements(APPENDED));
    let events: Events = (0..APPENDED).map(event).collect();
    for readers in thread_counts() {
        group.bench_function(BenchmarkId::new("readers", readers), |bencher| {
            bencher.iter_custom(|times| through_channels(&events, readers, times));
        });
    }
    group.finish();
}

/// Returns how long it takes until every reader has taken all events so many times.
fn through_channels(events: &Events, readers: u64, times: u64) -> Duration {
    thread::scope(|scope| {
        let (senders, readers): (Vec<_>, Vec<_>) = (0..readers)
            .map(|_| {
                let (sender, receiver) = crossbeam_channel::bounded::<Arc<Event>>(CHANNEL_EVENTS);
                let sum = move || receiver.iter().map(|event| event.revision).sum::<u64>();
                (sender, scope.spawn(sum))
            })
            .unzip();
        let begun = Instant::now();
        for _ in 0..times {
            for event in events {
                for sender in &senders {
                    sender.send(Arc::clone(event)).unwrap();
                }
            }
        }
        drop(senders);
        for reader in readers {
            black_box(reader.join().unwrap());
        }
        begun.elapsed()
    })
}

/// The number of events that a channel of crossbeam holds.
const CHANNEL_EVENTS: usize = 100;

/// The number of events that are appended in an iteration.
const APPENDED: u64 = 1_000;

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("window append and publish");
    group.throughput(Throughput::Elements(APPENDED));
    let events: Events = (0..APPENDED).map(event).collect();
    group.bench_function("floor: Vec push", |bencher| {
        let fresh = || Vec::with_capacity(events.len());
        let push = |mut kept: Events| {
            for event in &events {
                kept.push(Arc::clone(event));
            }
            kept
        };
        bencher.iter_batched(fresh, push, BatchSize::SmallInput);
    });
    // The numbers begin at 0 in each iteration, so that every slot is overwritten once.
    let ring = OverwritingRing::new(APPENDED);
    group.bench_function("peer: overwriting ring, events kept/1000", |bencher| {
        bencher.iter(|| {
            events
                .iter()
                .for_each(|event| ring.append(Arc::clone(event)))
        });
    });
    for kept in [1_000, EVENTS_MAX] {
        let (mut writer, _log, _events) = window(kept);
        let id = BenchmarkId::new("log, with eviction, events kept", kept);
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                for event in &events {
                    append_and_evict(&mut writer, event);
                }
            });
        });
    }
    group.finish();
}

fn search(criterion: &mut Criterion) {
    let (_writer, log, events) = window(EVENTS_MAX);
    let mut group = criterion.benchmark_group("window search");
    let mut place = 0;
    let mut next = move || {
        place = (place + 7_919) % EVENTS_MAX;
        place
    };
    group.bench_function("floor: Vec<Arc>", |bencher| {
        bencher.iter(|| {
            let revision = next();
            events.partition_point(|event| event.revision <= revision)
        });
    });
    group.bench_function("log", |bencher| {
        bencher.iter(|| {
            let revision = next();
            log.read()
                .partition_point(|event| event.revision <= revision)
        });
    });
    group.finish();
}

criterion_group!(
    benches,
    read,
    read_beside_a_writer,
    append,
    search,
    channels
);
criterion_main!(benches);
