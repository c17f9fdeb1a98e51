//! Makes a plan that fails smaller.

use std::time::Duration;

use crate::plan::Plan;
use crate::processes::Processes;
use crate::run::Outcome;

/// The shortest time for which clients write that is tried.
const DURATION_MIN: Duration = Duration::from_secs(2);

/// Leaves out faults, and time at the end, as long as the plan still fails. `tries` is told each plan that is tried.
///
/// # Errors
/// The system starts no process.
pub fn shrink(
    plan: Plan,
    outcome: Outcome,
    tries: impl Fn(&Plan),
) -> Result<(Plan, Outcome), String> {
    let run = |plan: &Plan| {
        tries(plan);
        let mut process = Processes::new();
        process.start(plan.clone())?;
        let ended = process.outcome()?;
        Ok::<_, String>(ended.map_or_else(Outcome::default, |(_, outcome)| outcome))
    };
    let mut failing = (plan, outcome);
    while failing.0.duration() / 2 >= DURATION_MIN {
        let mut shorter = failing.0.clone();
        shorter.shorten(failing.0.duration() / 2);
        let outcome = run(&shorter)?;
        if outcome.faults.is_empty() {
            break;
        }
        failing = (shorter, outcome);
    }
    let mut place = 0;
    while place < failing.0.faults().len() {
        let smaller = failing.0.without(place);
        let outcome = run(&smaller)?;
        if outcome.faults.is_empty() {
            place += 1;
        } else {
            failing = (smaller, outcome);
        }
    }
    Ok(failing)
}
