//! Models of `doorbell.rs` of the API server: a task that waits for an often and a seldom future.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::{Arc, Mutex};
use loom::thread;
use loom_tests::doorbell::Doorbell;
use ringwatch_explore::loom::explore;

use crate::of_same_task;

/// A future that is completed from elsewhere.
#[derive(Clone)]
struct Source(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ready: bool,
    waiting: Option<Waker>,
}

impl Source {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State::default())))
    }

    fn complete(&self) {
        let waiting = self.with(|state| {
            state.ready = true;
            state.waiting.take()
        });
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, waker: &Waker) -> bool {
        self.with(|state| {
            state.waiting = Some(waker.clone());
            state.ready
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits for both, and returns how often it polled the seldom one. A task that is never woken hangs, which loom
/// reports.
fn wait(bell: &Doorbell, often: &Source, seldom: &Source) -> usize {
    let (mut polls, mut done) = (0, (false, false));
    let mut task = None;
    block_on(poll_fn(|context| {
        let context = &mut of_same_task(&mut task, context);
        done.0 |= often.poll(context.waker());
        if !done.1
            && let Some(waker) = bell.answer(context)
        {
            polls += 1;
            done.1 = seldom.poll(&waker);
        }
        if done == (true, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    polls
}

#[test]
fn a_ring_wakes_the_task_and_nothing_else_has_the_seldom_future_polled() {
    let outcomes = ["polled once", "polled after a ring"];
    explore(100, &outcomes, |seen| {
        let (often, seldom) = (Source::new(), Source::new());
        let completing =
            [often.clone(), seldom.clone()].map(|source| thread::spawn(move || source.complete()));
        let polls = wait(&Doorbell::default(), &often, &seldom);
        for thread in completing {
            thread.join().expect("a thread ends");
        }
        assert!(polls <= 2, "polled {polls} times for one ring");
        seen.note(if polls == 1 {
            "polled once"
        } else {
            "polled after a ring"
        });
    });
}

/// The task that answered last is woken.
#[test]
fn a_ring_finds_the_task_that_the_connection_has_moved_to() {
    explore(20, &["woken"], |seen| {
        let (often, seldom) = (Source::new(), Source::new());
        let bell = Doorbell::default();
        let before = bell.answer(&Context::from_waker(Waker::noop()));
        assert!(!seldom.poll(&before.expect("it has rung at first")));
        often.complete();
        let ringing = seldom.clone();
        let ringing = thread::spawn(move || ringing.complete());
        wait(&bell, &often, &seldom);
        ringing.join().expect("a thread ends");
        seen.note("woken");
    });
}
