//! Models of `turns/` of flow control.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use loom_tests::turns::Turns;
use loom_tests::{Lane, Requester};
use ringwatch_explore::loom::explore;

fn user(name: &str) -> Requester {
    Requester {
        lane: Lane::Others,
        name: name.into(),
    }
}

/// Returns true if a turn is free.
fn is_free(turns: &Turns) -> bool {
    let user = user("last");
    let turn = pin!(turns.take(&user));
    turn.poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

/// Work of two steps, of which one at a time may run. The wait between them ends at once.
async fn two_steps(running: &AtomicU64) {
    let mut steps = 0;
    poll_fn(|context| {
        assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "both run");
        running.fetch_sub(1, Ordering::Relaxed);
        steps += 1;
        if steps == 2 {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Work that waits for its turn in vain hangs, which loom reports.
#[test]
fn steps_of_work_have_their_turns_one_after_the_other() {
    explore(20, &["done"], |seen| {
        let (turns, running) = (Turns::new(1), Arc::new(AtomicU64::new(0)));
        let threads = ["x", "y"].map(|name| {
            let (turns, running) = (turns.clone(), Arc::clone(&running));
            let seen = seen.clone();
            thread::spawn(move || {
                block_on(turns.do_in_steps(&user(name), two_steps(&running)));
                seen.note("done");
            })
        });
        for thread in threads {
            thread.join().expect("a thread ends");
        }
        assert!(is_free(&turns));
    });
}

/// A request that goes away may just have been given the turn, and passes it on.
#[test]
fn whoever_goes_away_from_its_turn_leaves_it_to_the_next() {
    explore(20, &["went away", "had it", "done"], |seen| {
        let (turns, running) = (Turns::new(1), Arc::new(AtomicU64::new(0)));
        let first = block_on(turns.take(&user("first")));
        let (hasty, noted) = (turns.clone(), seen.clone());
        let hasty = thread::spawn(move || {
            let user = user("hasty");
            let turn = pin!(hasty.take(&user));
            let polled = turn.poll(&mut Context::from_waker(Waker::noop()));
            noted.note(if polled.is_ready() {
                "had it"
            } else {
                "went away"
            });
        });
        let (patient, noted) = (turns.clone(), seen.clone());
        let patient = thread::spawn(move || {
            block_on(patient.do_in_steps(&user("patient"), two_steps(&running)));
            noted.note("done");
        });
        drop(first);
        hasty.join().expect("a thread ends");
        patient.join().expect("a thread ends");
        assert!(is_free(&turns));
    });
}
