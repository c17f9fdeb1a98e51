//! The way of events from one dispatcher to many watchers, which threads of their own read at the same time: the
//! segment log with a channel of signals for each watcher, as the cache has it, beside bounded channels of crossbeam
//! that carry the events, and a ring whose slots are overwritten, in which each watcher looks on its own.
//!
//! The time is from the first event until the last watcher has the last one. No task is woken: the readers look again
//! and again, so that the figures are those of the structures.
#![allow(
    clippy::disallowed_types,
    reason = "a bench is no part of what the models look at"
)]

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use criterion::{BenchmarkId, Criterion, Throughput};
use ringwatch::ring::channel::{self, Signal};
use ringwatch::ring::log::{Log, Slot, Writer, log};

/// The number of watchers that read what one dispatcher sends.
const WATCHERS: usize = 1_000;
/// The number of events that are sent in a round, after which the dispatcher waits until every watcher has them.
const ROUND_EVENTS: u64 = 16;
/// The number of events for which a channel, and the overwriting ring, has room: a round and more.
const SLOTS: usize = 32;

/// The least number of events that the log keeps: several segments, so that no event is gone before it has been read.
const LOG_EVENTS: u64 = 1_024;

/// An event, as large as the cache's record of one.
struct Event {
    number: u64,
    _record: [u64; 15],
}

fn event(number: u64) -> Arc<Event> {
    Arc::new(Event {
        number,
        _record: [number; 15],
    })
}

/// A way to send events to many watchers.
trait Way {
    type Sender;
    type Watcher: Send;

    /// Creates the dispatcher's side and the watchers.
    fn start() -> (Self::Sender, Vec<Self::Watcher>);

    /// Sends an event to every watcher.
    fn send(sender: &mut Self::Sender, event: Arc<Event>);

    /// Returns the sum of the numbers of the events that a watcher takes, and how many they are.
    fn take(watcher: &mut Self::Watcher) -> (u64, u64);
}

/// The log of segments, and a channel of signals for each watcher.
struct Signals;

type SignalSender = (Writer<Arc<Event>, u64>, Vec<channel::Sender<SLOTS>>);

impl Way for Signals {
    type Sender = SignalSender;
    type Watcher = (Log<Arc<Event>, u64>, channel::Receiver<SLOTS>);

    fn start() -> (Self::Sender, Vec<Self::Watcher>) {
        let (writer, log) = log(0);
        let channels = (0..WATCHERS).map(|_| channel::channel());
        let (senders, watchers) = channels
            .map(|(sender, mut receiver)| {
                receiver.resume();
                (sender, (log.clone(), receiver))
            })
            .unzip();
        ((writer, senders), watchers)
    }

    fn send((writer, senders): &mut Self::Sender, event: Arc<Event>) {
        let number = event.number;
        if writer.append(event) && number >= LOG_EVENTS {
            let base = writer.last_of(1).map_or(0, |event| event.number);
            drop(writer.evict(1, base));
        }
        writer.publish();
        for sender in senders {
            // The readers look again and again.
            let _ = sender.push(number);
        }
    }

    fn take((log, receiver): &mut Self::Watcher) -> (u64, u64) {
        let mut context = Context::from_waker(Waker::noop());
        let (mut sum, mut taken) = (0, 0);
        while let Poll::Ready(signal) = receiver.poll(&mut context) {
            let Signal::Event(number) = signal else {
                panic!("there is room for a round");
            };
            match log.read().slot(number) {
                Slot::Value(event) => sum += event.number,
                Slot::Future | Slot::Gone => panic!("it is there"),
            }
            taken += 1;
        }
        (sum, taken)
    }
}

/// A bounded channel of crossbeam for each watcher.
struct Crossbeam;

impl Way for Crossbeam {
    type Sender = Vec<crossbeam_channel::Sender<Arc<Event>>>;
    type Watcher = crossbeam_channel::Receiver<Arc<Event>>;

    fn start() -> (Self::Sender, Vec<Self::Watcher>) {
        (0..WATCHERS)
            .map(|_| crossbeam_channel::bounded(SLOTS))
            .unzip()
    }

    fn send(senders: &mut Self::Sender, event: Arc<Event>) {
        for sender in senders {
            sender
                .try_send(Arc::clone(&event))
                .expect("room for a round");
        }
    }

    fn take(watcher: &mut Self::Watcher) -> (u64, u64) {
        let events = watcher.try_iter();
        events.fold((0, 0), |(sum, taken), event| {
            (sum + event.number, taken + 1)
        })
    }
}

/// A ring whose slots are overwritten in place, with the number of the next event beside it.
struct Overwriting {
    slots: [ArcSwapOption<Event>; SLOTS],
    end: AtomicU64,
}

impl Way for Overwriting {
    type Sender = Arc<Self>;
    /// The ring, and the number that the watcher reads next.
    type Watcher = (Arc<Self>, u64);

    fn start() -> (Self::Sender, Vec<Self::Watcher>) {
        let ring = Arc::new(Self {
            slots: std::array::from_fn(|_| ArcSwapOption::empty()),
            end: AtomicU64::new(0),
        });
        let watchers = (0..WATCHERS).map(|_| (Arc::clone(&ring), 0)).collect();
        (ring, watchers)
    }

    fn send(ring: &mut Self::Sender, event: Arc<Event>) {
        let number = event.number;
        ring.slots[number as usize % SLOTS].store(Some(event));
        // Release: pairs with the Acquire in `take`.
        ring.end.store(number + 1, Ordering::Release);
    }

    fn take((ring, next): &mut Self::Watcher) -> (u64, u64) {
        // Acquire: pairs with the Release in `send`.
        let end = ring.end.load(Ordering::Acquire);
        let taken = end - *next;
        let read = |number: u64| {
            let found = ring.slots[number as usize % SLOTS].load();
            let event = found.as_ref().filter(|event| event.number == number);
            event.expect("it is there").number
        };
        let sum = (*next..end).map(read).sum();
        *next = end;
        (sum, taken)
    }
}

/// Compares the ways, with one, two and as many threads of readers as the machine runs.
pub fn peers(criterion: &mut Criterion) {
    let name = format!("dispatch to {WATCHERS} watchers beside their readers");
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ROUND_EVENTS * WATCHERS as u64));
    let all = thread::available_parallelism().map_or(1, usize::from);
    let mut counts = vec![1, 2, all];
    counts.sort_unstable();
    counts.dedup();
    for threads in counts {
        let id = |name| BenchmarkId::new(name, threads);
        group.bench_function(id("log and signals, reader threads"), |bencher| {
            bencher.iter_custom(|times| rounds::<Signals>(threads, times));
        });
        group.bench_function(
            id("peer: channels of crossbeam, reader threads"),
            |bencher| {
                bencher.iter_custom(|times| rounds::<Crossbeam>(threads, times));
            },
        );
        group.bench_function(id("peer: overwriting ring, reader threads"), |bencher| {
            bencher.iter_custom(|times| rounds::<Overwriting>(threads, times));
        });
    }
    group.finish();
}

/// Returns how long it takes to send so many rounds, each until every watcher has it.
fn rounds<W: Way>(threads: usize, times: u64) -> Duration {
    let (mut sender, mut watchers) = W::start();
    let total = times * ROUND_EVENTS;
    let begin = Barrier::new(threads + 1);
    let delivered = AtomicU64::new(0);
    thread::scope(|scope| {
        for watchers in watchers.chunks_mut(WATCHERS.div_ceil(threads)) {
            let (begin, delivered) = (&begin, &delivered);
            scope.spawn(move || {
                begin.wait();
                read::<W>(watchers, total, delivered);
            });
        }
        begin.wait();
        let begun = Instant::now();
        for round in 0..times {
            for number in round * ROUND_EVENTS..(round + 1) * ROUND_EVENTS {
                W::send(&mut sender, event(number));
            }
            let sent = (round + 1) * ROUND_EVENTS * WATCHERS as u64;
            // Acquire: pairs with the Release of the readers.
            while delivered.load(Ordering::Acquire) < sent {
                thread::yield_now();
            }
        }
        begun.elapsed()
    })
}

/// Reads until each of the watchers has so many events. What was taken in a walk over them is added to `delivered`.
fn read<W: Way>(watchers: &mut [W::Watcher], total: u64, delivered: &AtomicU64) {
    let all = total * watchers.len() as u64;
    let mut done = 0;
    while done < all {
        let mut walked = 0;
        for watcher in &mut *watchers {
            let (sum, taken) = W::take(watcher);
            black_box(sum);
            walked += taken;
        }
        done += walked;
        match walked {
            0 => spin_loop(),
            // Release: pairs with the Acquire of the dispatcher.
            walked => _ = delivered.fetch_add(walked, Ordering::Release),
        }
    }
}
