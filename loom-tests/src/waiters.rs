//! Models of `ring/waiters.rs`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use ringwatch_explore::loom::{Seen, explore};

use crate::ring::waiters::{Closed, PublishedNumber, Wait, published};

/// A wait that counts how often it was looked at.
struct Counted {
    wait: Wait,
    polls: usize,
}

impl Future for Counted {
    type Output = (Result<u64, Closed>, usize);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        let polls = self.polls;
        let value = Pin::new(&mut self.wait).poll(context);
        value.map(|value| (value, polls))
    }
}

/// Waits and says whether it had to sleep. A wait that is never woken is a deadlock, which loom
/// reports.
fn wait_for(published: &PublishedNumber, target: u64) -> (u64, &'static str) {
    let wait = published.wait(target);
    let (value, polls) = block_on(Counted { wait, polls: 0 });
    let value = value.expect("the publisher goes when it has published");
    assert!(value >= target, "woken before its time");
    (value, if polls == 1 { "at once" } else { "slept" })
}

fn look_once(wait: &mut Wait) -> Poll<Result<u64, Closed>> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_wait_against_a_publish_loses_no_wake_up() {
    explore(30, &["at once", "slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || noted.note(wait_for(&published, 1).1));
        publisher.publish(1);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn a_reader_sees_what_was_written_before_the_publish() {
    explore(5, &["before", "after"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let written = Arc::new(AtomicU64::new(0));
        let (noted, read) = (seen.clone(), Arc::clone(&written));
        let reader = thread::spawn(move || {
            if published.current() == 0 {
                noted.note("before");
            } else {
                assert_eq!(read.load(Ordering::Relaxed), 7, "published too early");
                noted.note("after");
            }
        });
        written.store(7, Ordering::Relaxed);
        publisher.publish(1);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn a_waiter_sees_what_was_written_before_the_publish() {
    explore(30, &["at once", "slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let written = Arc::new(AtomicU64::new(0));
        let (noted, read) = (seen.clone(), Arc::clone(&written));
        let reader = thread::spawn(move || {
            noted.note(wait_for(&published, 1).1);
            assert_eq!(read.load(Ordering::Relaxed), 7, "published too early");
        });
        written.store(7, Ordering::Relaxed);
        publisher.publish(1);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn a_cancelled_wait_leaves_nothing_and_takes_nothing_from_others() {
    let outcomes = ["cancelled: at once", "cancelled: slept", "at once", "slept"];
    explore(2000, &outcomes, |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let (noted, handle) = (seen.clone(), published.clone());
        let cancelled = thread::spawn(move || {
            let mut wait = handle.wait(1);
            noted.note(match look_once(&mut wait) {
                Poll::Ready(_) => "cancelled: at once",
                Poll::Pending => "cancelled: slept",
            });
        });
        let (noted, handle) = (seen.clone(), published.clone());
        let patient = thread::spawn(move || noted.note(wait_for(&handle, 1).1));
        publisher.publish(1);
        cancelled.join().expect("the cancelled reader ends");
        patient.join().expect("the patient reader ends");
        assert_eq!(published.waiting(), 0, "a waker stayed behind");
    });
}

#[test]
fn a_wait_for_more_than_was_published_is_taken_back() {
    explore(20, &["slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let (noted, handle) = (seen.clone(), published.clone());
        let reader = thread::spawn(move || {
            let mut wait = handle.wait(2);
            assert!(look_once(&mut wait).is_pending());
            noted.note("slept");
        });
        publisher.publish(1);
        reader.join().expect("the reader ends");
        assert_eq!(published.waiting(), 0, "a waker stayed behind");
    });
}

#[test]
fn each_of_several_waiters_is_woken_in_its_time() {
    explore(20_000, &["first", "second"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let readers = [1, 2].map(|target| {
            let (noted, handle) = (seen.clone(), published.clone());
            thread::spawn(move || {
                let (value, _) = wait_for(&handle, target);
                noted.note(if value == 1 { "first" } else { "second" });
            })
        });
        publisher.publish(1);
        publisher.publish(2);
        for reader in readers {
            reader.join().expect("the reader ends");
        }
        assert_eq!(published.waiting(), 0, "a waker stayed behind");
    });
}

#[test]
fn waiters_with_the_same_target_are_all_woken() {
    explore(4000, &["at once", "slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let readers = [1, 1].map(|target| {
            let (noted, handle) = (seen.clone(), published.clone());
            thread::spawn(move || noted.note(wait_for(&handle, target).1))
        });
        publisher.publish(1);
        for reader in readers {
            reader.join().expect("the reader ends");
        }
    });
}

/// A wait can be polled by one task first and by another later: the last one is woken.
#[test]
fn a_wait_that_moves_to_another_task_wakes_that() {
    explore(30, &["at once", "slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let mut wait = published.wait(1);
            let looked = look_once(&mut wait);
            let value = match looked {
                Poll::Ready(value) => value,
                Poll::Pending => block_on(wait),
            };
            assert_eq!(value, Ok(1));
            noted.note(if looked.is_ready() {
                "at once"
            } else {
                "slept"
            });
        });
        publisher.publish(1);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn the_number_never_falls() {
    explore(1, &["done"], |seen: &Seen| {
        let (mut publisher, published) = published(7);
        publisher.publish(5);
        assert_eq!((publisher.current(), published.current()), (7, 7));
        let mut wait = published.wait(9);
        assert!(look_once(&mut wait).is_pending());
        publisher.publish(8);
        assert!(look_once(&mut wait).is_pending());
        assert_eq!(published.waiting(), 1, "looking twice is waiting once");
        publisher.publish(10);
        assert_eq!(look_once(&mut wait), Poll::Ready(Ok(10)));
        seen.note("done");
    });
}

#[test]
fn the_end_of_the_publisher_ends_the_waits() {
    explore(5, &["at once", "slept"], |seen: &Seen| {
        let (publisher, published) = published(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || {
            let wait = published.wait(1);
            let (value, polls) = block_on(Counted { wait, polls: 0 });
            assert_eq!(value, Err(Closed));
            noted.note(if polls == 1 { "at once" } else { "slept" });
        });
        drop(publisher);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn what_was_reached_is_told_though_the_publisher_has_gone() {
    explore(30, &["at once", "slept"], |seen: &Seen| {
        let (mut publisher, published) = published(0);
        let noted = seen.clone();
        let reader = thread::spawn(move || noted.note(wait_for(&published, 1).1));
        publisher.publish(1);
        drop(publisher);
        reader.join().expect("the reader ends");
    });
}
