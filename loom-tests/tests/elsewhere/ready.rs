//! Models of `watch_streams/ready.rs` of the API server: a connection whose watches are woken by others.

use std::future::poll_fn;
use std::ptr;
use std::sync::Arc;
use std::task::Poll;

use loom::future::block_on;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use loom_tests::ready::{Entry, Ready};
use ringwatch_explore::loom::explore;

use crate::of_same_task;

/// The number of events that a watch has, and the number of them that the connection has written.
#[derive(Default)]
struct Events {
    sent: AtomicUsize,
    written: AtomicUsize,
}

fn send(watch: &Entry<Events>) {
    // Relaxed: the wake publishes it.
    watch.content().sent.fetch_add(1, Ordering::Relaxed);
    watch.wake();
}

/// Writes so many events, and returns how often a watch was looked at. A connection that is never woken hangs, which
/// loom reports.
fn write(ready: &Ready<Events>, events: usize) -> usize {
    let (mut written, mut looks) = (0, 0);
    let mut task = None;
    block_on(poll_fn(|context| {
        let context = &mut of_same_task(&mut task, context);
        loop {
            let turn = ready.take(context.waker());
            if turn.is_empty() {
                return if written == events {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                };
            }
            for (place, watch) in turn.iter().enumerate() {
                let events = watch.content();
                let before = turn[..place].iter().map(Entry::content);
                assert!(before.into_iter().all(|it| !ptr::eq(it, events)), "twice");
                watch.taken();
                looks += 1;
                // Relaxed: `taken` has seen the wake, and no other thread writes.
                let sent = events.sent.load(Ordering::Relaxed);
                written += sent - events.written.swap(sent, Ordering::Relaxed);
            }
        }
    }));
    looks
}

#[test]
fn every_event_is_written_and_no_watch_is_on_the_list_twice() {
    let outcomes = ["each by itself", "two in one look"];
    explore(100, &outcomes, |seen| {
        let ready = Ready::default();
        let watch = ready.entry(Events::default());
        let other = watch.clone();
        let sending = thread::spawn(move || send(&other));
        send(&watch);
        let looks = write(&ready, 2);
        sending.join().expect("it ends");
        match looks {
            1 => seen.note("two in one look"),
            2 => seen.note("each by itself"),
            // The second event may be written by the look for the first, after it has put the watch on the list again.
            _ => panic!("{looks} looks for two events"),
        }
    });
}

/// Whoever finds the watch on the list sees what was sent before its wake.
#[test]
fn a_watch_is_on_the_list_from_its_wake_until_it_is_taken() {
    explore(2, &["queued", "not yet"], |seen| {
        let ready = Ready::default();
        let watch = ready.entry(Events::default());
        let other = watch.clone();
        let sending = thread::spawn(move || send(&other));
        if watch.is_queued() {
            assert_eq!(watch.content().sent.load(Ordering::Relaxed), 1);
            seen.note("queued");
        } else {
            seen.note("not yet");
        }
        sending.join().expect("it ends");
        assert!(watch.is_queued());
        watch.taken();
        assert!(!watch.is_queued());
    });
}

#[test]
fn watches_that_are_woken_together_are_all_written() {
    explore(100, &["both"], |seen| {
        let ready = Ready::default();
        let watches = [
            ready.entry(Events::default()),
            ready.entry(Events::default()),
        ];
        let sending = watches.map(|watch| thread::spawn(move || send(&watch)));
        assert_eq!(write(&ready, 2), 2);
        for thread in sending {
            thread.join().expect("it ends");
        }
        seen.note("both");
    });
}

#[test]
fn watches_that_are_woken_while_their_connection_ends_are_freed() {
    explore(20, &["freed"], |seen| {
        let ready = Ready::default();
        let content = Arc::new(());
        let watches = [(); 2].map(|()| ready.entry(Arc::clone(&content)));
        let waking = watches.map(|watch| thread::spawn(move || watch.wake()));
        ready.close();
        assert!(!ready.has_entries());
        drop(ready);
        for thread in waking {
            thread.join().expect("it ends");
        }
        assert_eq!(Arc::strong_count(&content), 1, "the watches are gone");
        seen.note("freed");
    });
}
