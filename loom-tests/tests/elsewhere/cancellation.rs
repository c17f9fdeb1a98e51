//! Models of `cancellation.rs` of `ringwatch-http`.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use loom_tests::cancellation::{CancellationFlag, Cancelled};
use ringwatch_explore::loom::explore;

use crate::of_same_task;

/// A wait that counts how often it was looked at.
struct Counted {
    wait: Cancelled,
    polls: usize,
    task: Option<Waker>,
}

impl Future for Counted {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        self.polls += 1;
        let Self { wait, polls, task } = &mut *self;
        let context = &mut of_same_task(task, context);
        Pin::new(wait).poll(context).map(|()| *polls)
    }
}

/// Waits. Whoever is never woken hangs, which loom reports.
fn wait(wait: Cancelled) -> &'static str {
    let polls = block_on(Counted {
        wait,
        polls: 0,
        task: None,
    });
    if polls == 1 { "at once" } else { "slept" }
}

#[test]
fn all_who_wait_are_woken() {
    explore(30, &["at once", "slept"], |seen| {
        let flag = CancellationFlag::default();
        let waiting = [(); 2].map(|()| {
            let (seen, cancelled) = (seen.clone(), flag.cancelled());
            thread::spawn(move || seen.note(wait(cancelled)))
        });
        flag.cancel();
        for thread in waiting {
            thread.join().expect("a thread ends");
        }
    });
}

/// The task is woken that looked last, though another was there before.
#[test]
fn a_wait_that_moves_to_another_task_takes_its_wake_up_along() {
    explore(10, &["at once", "slept"], |seen| {
        let flag = CancellationFlag::default();
        let mut cancelled = flag.cancelled();
        let nobody = Waker::noop();
        let first = pin!(&mut cancelled).poll(&mut Context::from_waker(nobody));
        assert!(first.is_pending(), "nothing is cancelled");
        let seen = seen.clone();
        let waiting = thread::spawn(move || seen.note(wait(cancelled)));
        flag.cancel();
        waiting.join().expect("a thread ends");
    });
}

#[test]
fn whoever_sees_it_cancelled_sees_what_was_done_before() {
    explore(4, &["before", "after"], |seen| {
        let flag = CancellationFlag::default();
        let done = Arc::new(AtomicU64::new(0));
        let (seen, other, read) = (seen.clone(), flag.clone(), Arc::clone(&done));
        let looking = thread::spawn(move || {
            if other.is_cancelled() {
                assert_eq!(read.load(Ordering::Relaxed), 7, "cancelled too early");
                seen.note("after");
            } else {
                seen.note("before");
            }
        });
        done.store(7, Ordering::Relaxed);
        flag.cancel();
        looking.join().expect("a thread ends");
    });
}
