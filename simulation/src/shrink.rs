//! Makes a plan that fails smaller.

use std::time::Duration;

use crate::plan::Plan;
use crate::run::{Outcome, run};

/// The shortest time for which clients write that is tried.
const DURATION_MIN: Duration = Duration::from_secs(2);

/// Leaves out faults, and time at the end, as long as the plan still fails. `tries` is told each plan that is tried.
#[must_use]
pub fn shrink(plan: Plan, outcome: Outcome, tries: impl Fn(&Plan)) -> (Plan, Outcome) {
    let mut failing = (plan, outcome);
    while failing.0.duration() / 2 >= DURATION_MIN {
        let mut shorter = failing.0.clone();
        shorter.shorten(failing.0.duration() / 2);
        tries(&shorter);
        let outcome = run(&shorter);
        if outcome.faults.is_empty() {
            break;
        }
        failing = (shorter, outcome);
    }
    let mut place = 0;
    while place < failing.0.faults().len() {
        let smaller = failing.0.without(place);
        tries(&smaller);
        let outcome = run(&smaller);
        if outcome.faults.is_empty() {
            place += 1;
        } else {
            failing = (smaller, outcome);
        }
    }
    failing
}
