//! Models of `watch_streams/ready.rs` of the API server: a connection whose watches are woken by others.

use std::future::poll_fn;
use std::task::Poll;

use loom::future::block_on;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use loom_tests::ready::{Entry, Ready};
use ringwatch_explore::loom::explore;

use crate::of_same_task;

/// The events of a watch that the connection has not written.
type Events = AtomicUsize;

fn send(watch: &Entry<Events>) {
    // Relaxed: the wake publishes it.
    watch.content().fetch_add(1, Ordering::Relaxed);
    watch.wake();
}

/// Writes so many events, and returns how often a watch was looked at. A connection that is never woken hangs, which loom
/// reports.
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
            for watch in turn {
                watch.taken();
                looks += 1;
                written += watch.content().swap(0, Ordering::Relaxed);
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
        let watch = ready.entry(Events::new(0));
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

#[test]
fn watches_that_are_woken_together_are_all_written() {
    explore(100, &["both"], |seen| {
        let ready = Ready::default();
        let watches = [ready.entry(Events::new(0)), ready.entry(Events::new(0))];
        let sending = watches.map(|watch| thread::spawn(move || send(&watch)));
        assert_eq!(write(&ready, 2), 2);
        for thread in sending {
            thread.join().expect("it ends");
        }
        seen.note("both");
    });
}
