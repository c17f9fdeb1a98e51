//! Models of `ring/channel.rs`. The dispatcher is the model's own thread, the watcher is spawned.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::{self, JoinHandle};
use ringwatch_explore::loom::{Seen, explore};

use crate::ring::channel::{PushOutcome, Receiver, Sender, Signal, channel};

mod sleep;

/// A window of events that are their own numbers: how many there are.
type Window = Arc<AtomicU64>;

/// Does the dispatcher's part: publishes an event, then pushes its number.
fn publish<const N: usize>(sender: &mut Sender<N>, window: &Window, number: u64) -> PushOutcome {
    window.store(number + 1, Ordering::Release);
    let outcome = sender.push(number);
    wake(sender, outcome);
    outcome
}

fn wake<const N: usize>(sender: &mut Sender<N>, outcome: PushOutcome) {
    // There is none if the watcher has gone.
    if outcome == PushOutcome::QueuedNeedsWake
        && let Some(waker) = sender.waker()
    {
        waker.wake();
    }
}

/// Ends the watch with a last bookmark, or without one.
fn end<const N: usize>(sender: &mut Sender<N>, last: Option<u64>) {
    let outcome = sender.end(last);
    wake(sender, outcome);
}

/// The watcher's part: what it has delivered, and how it came by it.
struct Watcher<const N: usize> {
    receiver: Receiver<N>,
    window: Window,
    cursor: u64,
    /// Revisions of bookmarks, with the cursor at which they came.
    bookmarks: Vec<(u64, u64)>,
    /// The number of times that the channel signalled an event, and the number of times that an
    /// event found no room.
    signalled: usize,
    lagged: usize,
    has_resumed: bool,
}

impl<const N: usize> Watcher<N> {
    fn new(receiver: Receiver<N>, window: &Window) -> Self {
        Self {
            receiver,
            window: Arc::clone(window),
            cursor: 0,
            bookmarks: Vec::new(),
            signalled: 0,
            lagged: 0,
            has_resumed: false,
        }
    }

    /// Follows until the end on a thread of its own, and has what it came to looked at there.
    fn spawn(mut self, look: impl FnOnce(&Self) + Send + 'static) -> JoinHandle<()> {
        thread::spawn(move || {
            if !self.has_resumed {
                self.catch_up();
            }
            self.follow();
            look(&self);
        })
    }

    fn read_window(&mut self) {
        let end = self.window.load(Ordering::Acquire);
        assert!(end >= self.cursor, "delivered what is not there yet");
        self.cursor = end;
    }

    /// Reads to the window's end, resumes the channel, and reads once more.
    fn catch_up(&mut self) {
        self.read_window();
        self.receiver.resume();
        self.has_resumed = true;
        self.read_window();
    }

    /// Follows until the end. What is delivered is 0 up to the cursor, each once.
    fn follow(&mut self) {
        loop {
            let receiver = &mut self.receiver;
            match block_on(poll_fn(|context| receiver.poll(context))) {
                Signal::Event(number) => {
                    self.signalled += 1;
                    if number >= self.cursor {
                        assert_eq!(number, self.cursor, "an event was left out");
                        let end = self.window.load(Ordering::Relaxed);
                        assert!(end > number, "signalled before it was in the window");
                        self.cursor = number + 1;
                    }
                }
                Signal::Bookmark(revision) => self.bookmarks.push((revision, self.cursor)),
                Signal::Lagged(number) => {
                    self.lagged += 1;
                    assert!(number <= self.cursor, "an event was left out");
                    self.catch_up();
                }
                Signal::End(last) => {
                    self.bookmarks
                        .extend(last.map(|revision| (revision, self.cursor)));
                    return;
                }
            }
        }
    }

    fn assert_bookmarks_come_late(&self) {
        for (revision, cursor) in &self.bookmarks {
            assert!(cursor >= revision, "a bookmark came too early");
        }
    }

    fn has_bookmark(&self) -> &'static str {
        let none = self.bookmarks.is_empty();
        if none { "no bookmark" } else { "bookmark" }
    }

    fn path(&self) -> &'static str {
        match (self.signalled > 0, self.lagged > 0) {
            (false, false) => "read",
            (true, false) => "signalled",
            (true, true) => "signalled and overflowed",
            (false, true) => "overflowed without a signal",
        }
    }
}

/// Returns a watcher that begins overflowed.
fn overflowed<const N: usize>() -> (Sender<N>, Watcher<N>, Window) {
    let (sender, receiver) = channel::<N>();
    let window = Window::default();
    let watcher = Watcher::new(receiver, &window);
    (sender, watcher, window)
}

/// Returns a watcher that has resumed before anything happens.
fn resumed<const N: usize>() -> (Sender<N>, Watcher<N>, Window) {
    let (sender, mut watcher, window) = overflowed();
    watcher.catch_up();
    (sender, watcher, window)
}

fn look_once<const N: usize>(receiver: &mut Receiver<N>) -> Poll<Signal> {
    receiver.poll(&mut Context::from_waker(Waker::noop()))
}

/// Publishes so many events to a watcher, which misses none.
fn misses_nothing<const N: usize>(
    (mut sender, watcher, window): (Sender<N>, Watcher<N>, Window),
    events: u64,
    seen: &Seen,
) {
    let noted = seen.clone();
    let watching = watcher.spawn(move |watcher| {
        assert_eq!(watcher.cursor, events, "an event was missed");
        noted.note(watcher.path());
    });
    for number in 0..events {
        let _ = publish(&mut sender, &window, number);
    }
    end(&mut sender, None);
    watching.join().expect("the watcher ends");
}

#[test]
fn a_full_channel_overflows_and_is_resumed_without_a_gap() {
    let paths = ["signalled", "signalled and overflowed"];
    explore(1000, &paths, |seen| misses_nothing(resumed::<1>(), 3, seen));
}

#[test]
fn a_watcher_that_begins_overflowed_misses_nothing() {
    let paths = ["read", "signalled", "signalled and overflowed"];
    explore(1000, &paths, |seen| {
        misses_nothing(overflowed::<1>(), 2, seen)
    });
}

#[test]
fn slots_are_used_again_once_they_are_taken() {
    let paths = ["signalled", "signalled and overflowed"];
    explore(1000, &paths, |seen| misses_nothing(resumed::<2>(), 4, seen));
}

#[test]
fn a_bookmark_follows_what_it_covers_or_is_dropped() {
    let outcomes = ["queued", "dropped", "bookmark", "no bookmark"];
    explore(1000, &outcomes, |seen: &Seen| {
        let (mut sender, watcher, window) = resumed::<2>();
        let noted = seen.clone();
        let watching = watcher.spawn(move |watcher| {
            assert_eq!(watcher.cursor, 3, "an event was missed");
            watcher.assert_bookmarks_come_late();
            noted.note(watcher.has_bookmark());
        });
        let _ = publish(&mut sender, &window, 0);
        let _ = publish(&mut sender, &window, 1);
        let outcome = sender.bookmark(2);
        wake(&mut sender, outcome);
        seen.note(if outcome == PushOutcome::Full {
            "dropped"
        } else {
            "queued"
        });
        let _ = publish(&mut sender, &window, 2);
        end(&mut sender, None);
        watching.join().expect("the watcher ends");
    });
}

#[test]
fn a_bookmark_of_a_resumed_channel_covers_what_was_missed() {
    let outcomes = ["bookmark", "no bookmark"];
    explore(500, &outcomes, |seen: &Seen| {
        let (mut sender, watcher, window) = overflowed::<1>();
        let noted = seen.clone();
        let watching = watcher.spawn(move |watcher| {
            watcher.assert_bookmarks_come_late();
            noted.note(watcher.has_bookmark());
        });
        let _ = publish(&mut sender, &window, 0);
        let outcome = sender.bookmark(1);
        wake(&mut sender, outcome);
        end(&mut sender, None);
        watching.join().expect("the watcher ends");
    });
}

#[test]
fn the_last_bookmark_comes_after_everything_else() {
    let paths = ["signalled", "signalled and overflowed"];
    explore(500, &paths, |seen: &Seen| {
        let (mut sender, watcher, window) = resumed::<1>();
        let noted = seen.clone();
        let watching = watcher.spawn(move |watcher| {
            assert_eq!(watcher.bookmarks, [(50, 2)], "events first, then the last");
            noted.note(watcher.path());
        });
        for number in 0..2 {
            let _ = publish(&mut sender, &window, number);
        }
        end(&mut sender, Some(50));
        // The end has been signalled, and is not signalled once more.
        drop(sender);
        watching.join().expect("the watcher ends");
    });
}

#[test]
fn a_sender_that_goes_ends_the_watch() {
    explore(20, &["read", "signalled"], |seen: &Seen| {
        let (mut sender, watcher, window) = overflowed::<1>();
        let noted = seen.clone();
        let watching = watcher.spawn(move |watcher| {
            assert_eq!(watcher.cursor, 1, "an event was missed");
            let signalled = watcher.signalled > 0;
            noted.note(if signalled { "signalled" } else { "read" });
        });
        let _ = publish(&mut sender, &window, 0);
        drop(sender);
        watching.join().expect("the watcher ends");
    });
}

#[test]
fn a_watcher_that_goes_harms_nobody() {
    explore(20, &["queued", "overflowed"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<1>();
        let watching = thread::spawn(move || {
            let _ = look_once(&mut watcher.receiver);
        });
        let mut overflowed = false;
        for number in 0..2 {
            window.store(number + 1, Ordering::Release);
            overflowed |= sender.push(number) == PushOutcome::Full;
        }
        seen.note(if overflowed { "overflowed" } else { "queued" });
        let _ = sender.end(Some(9));
        watching.join().expect("the watcher goes");
        assert!(sender.waker().is_none(), "a waker stayed behind");
    });
}

#[test]
fn who_pushes_into_a_resumed_channel_sees_what_was_done_before() {
    explore(5, &["before", "after"], |seen: &Seen| {
        let (mut sender, mut receiver) = channel::<1>();
        let done = Window::default();
        let writes = Arc::clone(&done);
        let watching = thread::spawn(move || {
            writes.store(7, Ordering::Relaxed);
            receiver.resume();
        });
        if sender.push(0) == PushOutcome::Full {
            seen.note("before");
        } else {
            assert_eq!(done.load(Ordering::Relaxed), 7, "resumed too early");
            seen.note("after");
        }
        watching.join().expect("the watcher ends");
    });
}

/// The dispatcher notes up to which number it has sent everything. Who reads that, and then finds the channel empty,
/// has nothing to wait for below it.
#[test]
fn an_empty_channel_has_nothing_left_of_what_was_noted_as_sent() {
    explore(5, &["nothing is sent", "sent", "pushed"], |seen: &Seen| {
        let (mut sender, watcher, window) = resumed::<2>();
        let sent = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&sent);
        let watching = thread::spawn({
            let seen = seen.clone();
            move || {
                let below = noted.load(Ordering::Acquire);
                let is_empty = watcher.receiver.is_empty();
                assert!(!is_empty || below == 0, "an event was passed over");
                seen.note(match (below, is_empty) {
                    (0, true) => "nothing is sent",
                    (0, false) => "pushed",
                    _ => "sent",
                });
                assert!(!watcher.receiver.has_ended());
            }
        });
        let _ = publish(&mut sender, &window, 0);
        sent.store(1, Ordering::Release);
        watching.join().expect("the watcher ends");
        end(&mut sender, None);
    });
}

#[test]
fn a_channel_keeps_its_order_and_repeats_what_must_be_done() {
    explore(1, &["done"], |seen: &Seen| {
        let (mut sender, mut receiver) = channel::<2>();
        assert_eq!(sender.push(3), PushOutcome::Full);
        assert_eq!(sender.bookmark(4), PushOutcome::Full);
        assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Lagged(0)));
        receiver.resume();
        assert_eq!(sender.push(4), PushOutcome::Queued);
        assert_eq!(sender.bookmark(50), PushOutcome::Queued);
        assert_eq!(sender.bookmark(60), PushOutcome::Full, "there is no room");
        assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Event(4)));
        assert_eq!(
            sender.push(5),
            PushOutcome::Queued,
            "dropping a bookmark overflows no channel"
        );
        assert_eq!(sender.push(6), PushOutcome::Full);
        assert_eq!(sender.push(7), PushOutcome::Full);
        assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Bookmark(50)));
        assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Event(5)));
        for _ in 0..2 {
            assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Lagged(6)));
        }
        assert_eq!(sender.push(8), PushOutcome::Full, "until it resumes");
        receiver.resume();
        assert_eq!(look_once(&mut receiver), Poll::Pending);
        assert_eq!(sender.push(9), PushOutcome::QueuedNeedsWake);
        assert!(sender.waker().is_some(), "the sender has a copy now");
        assert_eq!(
            sender.bookmark(u64::MAX),
            PushOutcome::Full,
            "no such revision"
        );
        assert_eq!(sender.end(Some(90)), PushOutcome::Queued);
        assert_eq!(look_once(&mut receiver), Poll::Ready(Signal::Event(9)));
        for _ in 0..2 {
            let last = Poll::Ready(Signal::End(Some(90)));
            assert_eq!(look_once(&mut receiver), last);
        }
        seen.note("done");
    });
}
