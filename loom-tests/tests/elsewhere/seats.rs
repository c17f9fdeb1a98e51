//! Models of `fairness/seats.rs` of flow control.

#![allow(
    clippy::disallowed_methods,
    reason = "the time at which a request comes"
)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use loom_tests::clock::Instant;
use loom_tests::seats::{SeatRequest, Seats};
use loom_tests::{Level, Limits};
use ringwatch_explore::loom::explore;

const LIMITS: Limits = Limits {
    shares: 1,
    lendable_percent: 0,
    queue_length: 2,
};

/// Creates one seat for one level.
fn one_seat() -> Seats {
    let level = Level {
        name: "a".into(),
        limits: Some(LIMITS),
    };
    Seats::new(1, &[level.into()])
}

fn ask(seats: &Seats, flow: &str) -> SeatRequest {
    let request = seats.ask("a", LIMITS, flow, Instant::now());
    request.expect("there is room in the queue")
}

/// Holds the seat for a moment. A request that waits in vain hangs, which loom reports.
fn use_seat(seats: &Seats, flow: &str, holders: &AtomicU64) -> &'static str {
    let request = ask(seats, flow);
    let waited = if request.waits() { "waited" } else { "at once" };
    let seat = block_on(request.seated()).expect("the level stays");
    assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "both have it");
    holders.fetch_sub(1, Ordering::Relaxed);
    drop(seat);
    waited
}

#[test]
fn a_seat_goes_from_one_to_the_next() {
    explore(20, &["at once", "waited"], |seen| {
        let (seats, holders) = (one_seat(), Arc::new(AtomicU64::new(0)));
        let threads = ["x", "y"].map(|flow| {
            let (seats, holders) = (seats.clone(), Arc::clone(&holders));
            let seen = seen.clone();
            thread::spawn(move || seen.note(use_seat(&seats, flow, &holders)))
        });
        for thread in threads {
            thread.join().expect("a thread ends");
        }
        assert!(!ask(&seats, "z").waits(), "all seats are free");
    });
}

/// A request that goes away may just have been given the seat, and passes it on.
#[test]
fn whoever_goes_away_from_its_turn_leaves_the_seat_to_the_next() {
    explore(50, &["at once", "waited", "went away", "seated"], |seen| {
        let (seats, holders) = (one_seat(), Arc::new(AtomicU64::new(0)));
        let first = block_on(ask(&seats, "first").seated()).expect("it is free");
        let (hasty, noted) = (seats.clone(), seen.clone());
        let hasty = thread::spawn(move || {
            let mut seat = pin!(ask(&hasty, "hasty").seated());
            let context = &mut Context::from_waker(Waker::noop());
            let seated = seat.as_mut().poll(context).is_ready();
            noted.note(if seated { "seated" } else { "went away" });
        });
        let (patient, noted) = (seats.clone(), seen.clone());
        let patient = thread::spawn(move || noted.note(use_seat(&patient, "patient", &holders)));
        drop(first);
        hasty.join().expect("a thread ends");
        patient.join().expect("a thread ends");
        assert!(!ask(&seats, "z").waits(), "all seats are free");
    });
}
