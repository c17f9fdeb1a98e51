//! Explorations that must fail: too few executions, outcomes that were not seen or not expected, faults.

use ringwatch_explore::{loom as by_loom, shuttle as by_shuttle};

#[test]
#[should_panic(expected = "1 executions, 2 expected at least")]
fn loom_must_take_the_minimum_of_executions() {
    by_loom::explore(2, &[], |_| {});
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn loom_must_see_every_outcome() {
    by_loom::explore(1, &["seen"], |_| {});
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn loom_must_see_no_other_outcome() {
    by_loom::explore(1, &[], |seen| seen.note("another"));
}

#[test]
#[should_panic(expected = "too early")]
fn loom_sees_a_publication_that_orders_nothing() {
    use by_loom::sync::{Arc, AtomicU64, Ordering};
    by_loom::explore(1, &[], |_| {
        let shared = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let written = Arc::clone(&shared);
        loom::thread::spawn(move || {
            written[0].store(1, Ordering::Relaxed);
            written[1].store(1, Ordering::Relaxed);
        });
        if shared[1].load(Ordering::Acquire) == 1 {
            assert_eq!(shared[0].load(Ordering::Relaxed), 1, "too early");
        }
    });
}

#[test]
#[should_panic(expected = "no schedule saw \"seen\"")]
fn shuttle_must_see_every_outcome() {
    // shuttle itself refuses a model without a second thread.
    by_shuttle::explore(10, &["seen"], |_| {
        let value = by_shuttle::sync::Arc::new(by_shuttle::sync::AtomicU64::new(0));
        let read = by_shuttle::sync::Arc::clone(&value);
        let read = move || read.load(by_shuttle::sync::Ordering::SeqCst);
        let other = shuttle::thread::spawn(read);
        value.load(by_shuttle::sync::Ordering::SeqCst);
        other.join().expect("it does not panic");
    });
}

#[test]
#[should_panic(expected = "9 schedules")]
fn shuttle_needs_schedules_for_a_seed_to_repeat() {
    by_shuttle::explore(9, &[], |_| {});
}

#[test]
#[should_panic(expected = "a write is lost")]
fn shuttle_sees_a_lost_write() {
    use by_shuttle::sync::{Arc, AtomicU64, Ordering};
    by_shuttle::explore(100, &[], |_| {
        let count = Arc::new(AtomicU64::new(0));
        let add = |count: &AtomicU64| {
            let value = count.load(Ordering::SeqCst);
            count.store(value + 1, Ordering::SeqCst);
        };
        let other = Arc::clone(&count);
        let other = shuttle::thread::spawn(move || add(&other));
        add(&count);
        other.join().expect("it does not panic");
        assert_eq!(count.load(Ordering::SeqCst), 2, "a write is lost");
    });
}
