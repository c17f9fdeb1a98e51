//! Models of how a watcher falls asleep and is woken, and of its waker, which each side of the channel has a copy of.

use std::task::ready;

use super::*;

#[test]
fn a_push_against_a_sleep_loses_no_wake_up() {
    explore(10, &["awake", "asleep"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        let watching = thread::spawn(move || {
            let receiver = &mut watcher.receiver;
            let signal = block_on(poll_fn(|context| receiver.poll(context)));
            assert_eq!(signal, Signal::Event(0));
        });
        seen.note(match publish(&mut sender, &window, 0) {
            PushOutcome::Queued => "awake",
            PushOutcome::QueuedNeedsWake => "asleep",
            PushOutcome::Full => "overflowed",
        });
        watching.join().expect("the watcher ends");
    });
}

/// A future may be polled while nothing has woken it, and by another task than before.
#[test]
fn a_sleeper_that_looks_again_is_woken_where_it_looked_last() {
    explore(20, &["at once", "slept"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        let noted = seen.clone();
        let watching = thread::spawn(move || {
            if look_once(&mut watcher.receiver).is_ready() {
                noted.note("at once");
                return;
            }
            noted.note("slept");
            let receiver = &mut watcher.receiver;
            let signal = block_on(poll_fn(|context| receiver.poll(context)));
            assert_eq!(signal, Signal::Event(0));
        });
        let _ = publish(&mut sender, &window, 0);
        watching.join().expect("the watcher ends");
    });
}

/// Another task polls while the watcher is marked asleep for one that the sender knows.
#[test]
fn a_sleeper_is_woken_by_the_task_that_polls_now() {
    explore(5, &["awake", "asleep"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        assert_eq!(look_once(&mut watcher.receiver), Poll::Pending);
        let _ = publish(&mut sender, &window, 0);
        let first = Poll::Ready(Signal::Event(0));
        assert_eq!(look_once(&mut watcher.receiver), first);
        assert_eq!(look_once(&mut watcher.receiver), Poll::Pending);
        let noted = seen.clone();
        let watching = thread::spawn(move || {
            let receiver = &mut watcher.receiver;
            let mut polls = 0;
            let signal = block_on(poll_fn(|context| {
                polls += 1;
                receiver.poll(context)
            }));
            assert_eq!(signal, Signal::Event(1));
            noted.note(if polls > 1 { "asleep" } else { "awake" });
        });
        let _ = publish(&mut sender, &window, 1);
        watching.join().expect("the watcher ends");
    });
}

/// The watcher puts another waker under the lock while the sender fetches the one before: it is not marked yet.
#[test]
fn a_waker_that_was_fetched_early_is_kept() {
    explore(20, &["once", "twice"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        assert_eq!(look_once(&mut watcher.receiver), Poll::Pending);
        let watching = thread::spawn(move || take_two(&mut watcher.receiver));
        seen.note(["never", "once", "twice"][publish_two(&mut sender, &window)]);
        watching.join().expect("the watcher ends");
    });
}

/// One task takes several signals: its waker is passed on once, with the first sleep that no push forestalls.
#[test]
fn a_task_that_sleeps_again_is_woken_again() {
    explore(50, &["once", "twice", "never"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        let watching = thread::spawn(move || take_two(&mut watcher.receiver));
        seen.note(["never", "once", "twice"][publish_two(&mut sender, &window)]);
        watching.join().expect("the watcher ends");
    });
}

/// Takes the events 0 and 1 in one task. loom's waker does not know its own clones, so a clone is what polls.
fn take_two<const N: usize>(receiver: &mut Receiver<N>) {
    let mut task = None::<Waker>;
    let mut number = 0;
    block_on(poll_fn(|context| {
        let task = task.get_or_insert_with(|| context.waker().clone());
        while number < 2 {
            let signal = ready!(receiver.poll(&mut Context::from_waker(task)));
            assert_eq!(signal, Signal::Event(number));
            number += 1;
        }
        Poll::Ready(())
    }));
}

/// Publishes the events 0 and 1, and returns for how many of them the watcher was asleep.
fn publish_two<const N: usize>(sender: &mut Sender<N>, window: &Window) -> usize {
    let outcomes = [0, 1].map(|number| publish(sender, window, number));
    let asleep = outcomes
        .iter()
        .filter(|&&it| it == PushOutcome::QueuedNeedsWake);
    asleep.count()
}

#[test]
fn a_watcher_that_has_gone_is_not_asleep() {
    explore(2, &["asleep", "awake"], |seen: &Seen| {
        let (mut sender, mut watcher, window) = resumed::<2>();
        let watching = thread::spawn(move || {
            assert_eq!(look_once(&mut watcher.receiver), Poll::Pending);
        });
        watching.join().expect("the watcher goes");
        assert_eq!(publish(&mut sender, &window, 0), PushOutcome::Queued);
        seen.note("awake");

        let (mut sender, mut watcher, window) = resumed::<2>();
        assert_eq!(look_once(&mut watcher.receiver), Poll::Pending);
        let watching = thread::spawn(move || drop(watcher));
        if publish(&mut sender, &window, 0) == PushOutcome::QueuedNeedsWake {
            seen.note("asleep");
        }
        watching.join().expect("the watcher goes");
    });
}
