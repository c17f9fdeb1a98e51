//! Models of `ring/registrations.rs`, with the channel and a window of which only the length is known.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc as PlainArc;

use loom::future::block_on;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use ringwatch_explore::loom::{Seen, explore};

use crate::ring::channel::{PushOutcome, Receiver, Sender, Signal, channel};
use crate::ring::registrations::{
    Registrar, Registration, Registrations, WAITING_MAX, registrations,
};

type NewWatcher = Sender<1>;

/// The state that readers of the feed see.
struct Feed {
    /// The number of events that the window has.
    end: AtomicU64,
    /// True if the feed has stopped.
    stopped: AtomicU64,
    registrar: Registrar<NewWatcher>,
}

/// The dispatcher, and those it knows to be present.
struct Dispatcher {
    feed: PlainArc<Feed>,
    registrations: Registrations<NewWatcher>,
    present: BTreeMap<u32, NewWatcher>,
}

impl Dispatcher {
    fn new() -> Self {
        let (registrar, registrations) = registrations();
        Self {
            feed: PlainArc::new(Feed {
                end: AtomicU64::new(0),
                stopped: AtomicU64::new(0),
                registrar,
            }),
            registrations,
            present: BTreeMap::new(),
        }
    }

    fn apply_registrations(&mut self) {
        for registration in self.registrations.take() {
            note(&mut self.present, registration);
        }
    }

    fn publish(&mut self, number: u64) {
        self.feed.end.store(number + 1, Ordering::Release);
        self.apply_registrations();
        for sender in self.present.values_mut() {
            let outcome = sender.push(number);
            wake(sender, outcome);
        }
    }

    /// Says that the feed has stopped, then ends everyone.
    fn stop(&mut self) {
        self.feed.stopped.store(1, Ordering::Release);
        self.apply_registrations();
        self.end_all(None);
    }

    /// Sends away whoever comes from now on, and ends everyone.
    fn close(&mut self, last: Option<u64>) {
        for registration in self.registrations.close() {
            note(&mut self.present, registration);
        }
        self.end_all(last);
    }

    fn end_all(&mut self, last: Option<u64>) {
        for sender in self.present.values_mut() {
            let outcome = sender.end(last);
            wake(sender, outcome);
        }
    }
}

fn note(present: &mut BTreeMap<u32, NewWatcher>, registration: Registration<NewWatcher>) {
    let number = match registration {
        Registration::Add(number, sender) => {
            assert!(
                present.insert(number, sender).is_none(),
                "two have one number"
            );
            return;
        }
        Registration::Remove(number) => number,
    };
    assert!(present.remove(&number).is_some(), "who left was not there");
}

fn wake(sender: &mut NewWatcher, outcome: PushOutcome) {
    if outcome == PushOutcome::QueuedNeedsWake
        && let Some(waker) = sender.waker()
    {
        waker.wake();
    }
}

/// Follows the window from `cursor` on, until the end; returns how far it came.
fn follow(feed: &Feed, mut receiver: Receiver<1>, mut cursor: u64) -> u64 {
    loop {
        cursor = cursor.max(feed.end.load(Ordering::Acquire));
        receiver.resume();
        cursor = cursor.max(feed.end.load(Ordering::Acquire));
        loop {
            match block_on(poll_fn(|context| receiver.poll(context))) {
                Signal::Event(number) => {
                    assert!(number <= cursor, "an event was left out");
                    cursor = cursor.max(number + 1);
                }
                Signal::Lagged(number) => {
                    assert!(number <= cursor, "an event was left out");
                    break;
                }
                Signal::Bookmark(_) => {}
                Signal::End(_) => return cursor,
            }
        }
    }
}

/// Whoever registers before the queue closes gets every event from where it begins on; others are sent
/// away.
#[test]
fn attaching_against_a_publish_leaves_no_gap() {
    let outcomes = ["sent away", "began with 0", "began with 1", "began with 2"];
    explore(1000, &outcomes, |seen: &Seen| {
        let mut dispatcher = Dispatcher::new();
        let (noted, feed) = (seen.clone(), PlainArc::clone(&dispatcher.feed));
        let watching = thread::spawn(move || {
            let (sender, receiver) = channel::<1>();
            if feed.registrar.add(sender).is_err() {
                noted.note("sent away");
                return;
            }
            let start = feed.end.load(Ordering::Acquire);
            assert_eq!(follow(&feed, receiver, start), 2, "an event was missed");
            noted.note(["began with 0", "began with 1", "began with 2"][start as usize]);
        });
        dispatcher.publish(0);
        dispatcher.publish(1);
        dispatcher.close(None);
        watching.join().expect("the watcher ends");
    });
}

/// Neither hangs: the feed ends the watcher, or the watcher sees that the feed has stopped.
#[test]
fn attaching_against_a_stop_hangs_nobody() {
    let outcomes = ["ended", "refused"];
    explore(50, &outcomes, |seen: &Seen| {
        let mut dispatcher = Dispatcher::new();
        let (noted, feed) = (seen.clone(), PlainArc::clone(&dispatcher.feed));
        let watching = thread::spawn(move || {
            let (sender, receiver) = channel::<1>();
            let registered = feed.registrar.add(sender).expect("open");
            if feed.stopped.load(Ordering::Acquire) == 1 {
                feed.registrar.remove(registered.number);
                noted.note("refused");
            } else {
                follow(&feed, receiver, 0);
                noted.note("ended");
            }
        });
        dispatcher.stop();
        watching.join().expect("the watcher ends");
    });
}

/// A last bookmark reaches everyone who was let in.
#[test]
fn attaching_against_a_drain_gets_the_last_bookmark_or_is_sent_away() {
    explore(10, &["sent away", "last"], |seen: &Seen| {
        let mut dispatcher = Dispatcher::new();
        let (noted, feed) = (seen.clone(), PlainArc::clone(&dispatcher.feed));
        let watching = thread::spawn(move || {
            let (sender, mut receiver) = channel::<1>();
            if feed.registrar.add(sender).is_err() {
                noted.note("sent away");
                return;
            }
            receiver.resume();
            let signal = block_on(poll_fn(|context| receiver.poll(context)));
            assert_eq!(signal, Signal::End(Some(7)));
            noted.note("last");
        });
        dispatcher.close(Some(7));
        watching.join().expect("the watcher ends");
    });
}

/// Two come and go, and one of them comes again: the dispatcher never takes one for another.
#[test]
fn numbers_are_used_again_and_never_by_two() {
    explore(
        200,
        &["its own number", "another's number"],
        |seen: &Seen| {
            let mut dispatcher = Dispatcher::new();
            let comers = [0, 1].map(|turn| {
                let (noted, feed) = (seen.clone(), PlainArc::clone(&dispatcher.feed));
                thread::spawn(move || {
                    let (sender, _receiver) = channel::<1>();
                    let first = feed.registrar.add(sender).expect("open").number;
                    feed.registrar.remove(first);
                    if turn == 0 {
                        let (sender, _receiver) = channel::<1>();
                        let second = feed.registrar.add(sender).expect("open").number;
                        assert!(second < 2, "a free number was not used");
                        noted.note(if first == second {
                            "its own number"
                        } else {
                            "another's number"
                        });
                    }
                })
            });
            dispatcher.apply_registrations();
            for comer in comers {
                comer.join().expect("it goes");
            }
            dispatcher.apply_registrations();
            assert_eq!(dispatcher.present.len(), 1, "one is present");
        },
    );
}

#[test]
fn a_crowd_is_told_to_help_and_a_closed_gate_takes_nobody() {
    explore(1, &["done"], |seen: &Seen| {
        let (registrar, mut registrations) = registrations::<u32>();
        for watcher in 0..WAITING_MAX as u32 {
            let registered = registrar.add(watcher).expect("open");
            assert_eq!((registered.number, registered.crowded), (watcher, false));
        }
        assert!(registrar.remove(5), "more wait than may");
        let registered = registrar.add(7).expect("open");
        assert_eq!((registered.number, registered.crowded), (5, true));
        assert_eq!(registrations.take().count(), WAITING_MAX + 2);
        assert!(!registrar.remove(9));
        assert_eq!(
            registrations.close().collect::<Vec<_>>(),
            [Registration::Remove(9)]
        );
        assert_eq!(registrar.add(1), Err(1));
        assert!(!registrar.remove(2));
        assert_eq!(
            registrations.take().count(),
            0,
            "a closed queue keeps nothing"
        );
        seen.note("done");
    });
}
