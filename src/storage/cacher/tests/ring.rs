//! The channel, the waiters and the registrations of `ring`, one step after the other. The files of `ring` have no
//! tests, because they are compiled over loom's primitives too.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::ring::channel::{PushOutcome, Receiver, Signal, channel};
use crate::ring::registrations::{Registration, RegistrationResult, WAITING_MAX, registrations};
use crate::ring::waiters::{Closed, published};
use crate::sync::{AtomicUsize, Ordering};

/// The largest revision of a bookmark that fits into a slot.
const BOOKMARK_MAX: u64 = (1 << 58) - 1;

/// A task that counts how often it is woken.
#[derive(Default)]
struct Task {
    woken: AtomicUsize,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Task {
    fn woken(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }
}

/// Returns the next signal, or registers a task to be woken.
fn next<const N: usize>(receiver: &mut Receiver<N>, task: &Arc<Task>) -> Option<Signal> {
    let waker = Waker::from(Arc::clone(task));
    match receiver.poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(signal) => Some(signal),
        Poll::Pending => None,
    }
}

#[test]
fn a_channel_queues_until_it_is_full_and_says_where_it_lagged() {
    let task = Arc::<Task>::default();
    let (mut sender, mut receiver) = channel::<2>();
    assert_eq!(next(&mut receiver, &task), Some(Signal::Lagged(0)));
    receiver.resume();
    assert_eq!(next(&mut receiver, &task), None);
    assert_eq!(sender.push(7), PushOutcome::QueuedNeedsWake);
    sender.waker().expect("it sleeps").wake();
    assert_eq!(task.woken(), 1);
    assert_eq!(sender.push(8), PushOutcome::Queued);
    assert_eq!(sender.push(9), PushOutcome::Full);
    assert_eq!(sender.push(10), PushOutcome::Full);
    for expected in [
        Signal::Event(7),
        Signal::Event(8),
        Signal::Lagged(9),
        Signal::Lagged(9),
    ] {
        assert_eq!(next(&mut receiver, &task), Some(expected));
    }
    receiver.resume();
    assert_eq!(sender.push(11), PushOutcome::Queued);
    assert_eq!(next(&mut receiver, &task), Some(Signal::Event(11)));
    assert_eq!(next(&mut receiver, &task), None);
}

#[test]
fn a_bookmark_that_finds_no_room_is_dropped() {
    let task = Arc::<Task>::default();
    let (mut sender, mut receiver) = channel::<2>();
    receiver.resume();
    assert_eq!(sender.bookmark(BOOKMARK_MAX), PushOutcome::Queued);
    for too_large in [BOOKMARK_MAX + 1, u64::MAX] {
        assert_eq!(sender.bookmark(too_large), PushOutcome::Full);
    }
    assert_eq!(sender.bookmark(5), PushOutcome::Queued);
    assert_eq!(sender.bookmark(6), PushOutcome::Full);
    let expected = [Signal::Bookmark(BOOKMARK_MAX), Signal::Bookmark(5)].map(Some);
    for expected in expected.into_iter().chain([None]) {
        assert_eq!(next(&mut receiver, &task), expected);
    }
}

#[test]
fn a_sender_that_is_dropped_ends_the_channel_and_wakes() {
    let task = Arc::<Task>::default();
    let (sender, mut receiver) = channel::<2>();
    receiver.resume();
    assert_eq!(next(&mut receiver, &task), None);
    drop(sender);
    assert_eq!(task.woken(), 1);
    assert_eq!(next(&mut receiver, &task), Some(Signal::End(None)));
}

#[test]
fn the_end_of_a_channel_is_told_once_with_its_bookmark() {
    let task = Arc::<Task>::default();
    let (mut sender, mut receiver) = channel::<2>();
    receiver.resume();
    assert_eq!(next(&mut receiver, &task), None);
    assert_eq!(sender.end(Some(5)), PushOutcome::QueuedNeedsWake);
    drop(sender);
    assert_eq!(task.woken(), 0, "that is left to the caller");
    assert_eq!(next(&mut receiver, &task), Some(Signal::End(Some(5))));
    assert_eq!(next(&mut receiver, &task), Some(Signal::End(Some(5))));
}

#[test]
fn a_receiver_that_is_dropped_leaves_no_waker_behind() {
    let task = Arc::<Task>::default();
    let (sender, mut receiver) = channel::<2>();
    receiver.resume();
    assert_eq!(next(&mut receiver, &task), None);
    assert_eq!(Arc::strong_count(&task), 3);
    drop(receiver);
    assert_eq!(Arc::strong_count(&task), 1);
    drop(sender);
    assert_eq!(task.woken(), 0);
}

#[test]
fn a_waker_is_asked_for_again_only_when_another_task_polls() {
    let tasks = [(); 2].map(|()| Arc::<Task>::default());
    let (mut sender, mut receiver) = channel::<2>();
    receiver.resume();
    for (number, task) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 0)] {
        let task = &tasks[task];
        assert_eq!(next(&mut receiver, task), None);
        assert_eq!(next(&mut receiver, task), None);
        let woken = task.woken();
        assert_eq!(sender.push(number), PushOutcome::QueuedNeedsWake);
        sender.waker().expect("it sleeps").wake();
        assert_eq!(task.woken(), woken + 1);
        // The task itself, and the copies of the two halves.
        assert_eq!(Arc::strong_count(task), 3);
        assert_eq!(next(&mut receiver, task), Some(Signal::Event(number)));
    }
}

#[test]
fn a_receiver_that_is_dropped_is_not_asleep() {
    let task = Arc::<Task>::default();
    let (mut sender, mut receiver) = channel::<2>();
    receiver.resume();
    assert_eq!(next(&mut receiver, &task), None);
    assert_eq!(sender.push(0), PushOutcome::QueuedNeedsWake);
    sender.waker().expect("it sleeps").wake();
    assert_eq!(next(&mut receiver, &task), Some(Signal::Event(0)));
    assert_eq!(next(&mut receiver, &task), None);
    drop(receiver);
    assert_eq!(sender.push(1), PushOutcome::Queued);
    drop(sender);
    assert_eq!(task.woken(), 1);
}

#[test]
fn waiters_of_one_number_are_all_woken() {
    let (mut publisher, number) = published(1);
    let tasks = [(); 3].map(|()| Arc::<Task>::default());
    let wakers = [0, 1, 2].map(|at| Waker::from(Arc::clone(&tasks[at])));
    let (one, other, later) = (number.wait(5), number.wait(5), number.wait(6));
    let mut waits = [pin!(one), pin!(other), pin!(later)];
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(
            wait.as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    assert_eq!(number.waiting(), 3);
    publisher.publish(5);
    assert_eq!([0, 1, 2].map(|at| tasks[at].woken()), [1, 1, 0]);
    assert_eq!(number.waiting(), 1);
    drop(publisher);
    assert_eq!([0, 1, 2].map(|at| tasks[at].woken()), [1, 1, 1]);
    for (wait, expected) in waits.iter_mut().zip([Ok(5), Ok(5), Err(Closed)]) {
        let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(expected));
    }
}

#[test]
fn whoever_finds_many_registrations_queued_must_help() {
    let (registrar, mut owner) = registrations();
    for number in 0..WAITING_MAX as u32 {
        let added = registrar.add(());
        let crowded = false;
        assert_eq!(added, Ok(RegistrationResult { number, crowded }));
    }
    assert!(registrar.remove(0), "one too many");
    assert_eq!(owner.take().count(), WAITING_MAX + 1);
    let again = registrar.add(()).expect("it is open");
    assert_eq!((again.number, again.crowded), (0, false));
    assert_eq!(owner.close().next(), Some(Registration::Add(0, ())));
    assert_eq!(registrar.add(()), Err(()));
    assert!(!registrar.remove(0));
}
