//! Exploring every interleaving of a model with loom.
//!
//! At most 3 preemptions and 10,000 branches of an execution are explored, unless `LOOM_MAX_PREEMPTIONS`
//! or `LOOM_MAX_BRANCHES` say otherwise. loom's other variables hold as well; one that ends it early
//! (`LOOM_MAX_DURATION`, `LOOM_MAX_PERMUTATIONS`) leads to a failure if the minimum of executions was not reached.
//!
//! ```
//! use ringwatch_explore::loom::explore;
//! use ringwatch_explore::loom::sync::{Arc, AtomicU64, Ordering};
//!
//! explore(2, &["early", "late"], |seen| {
//!     let value = Arc::new(AtomicU64::new(0));
//!     let written = Arc::clone(&value);
//!     let writer = loom::thread::spawn(move || written.store(1, Ordering::Release));
//!     let early = value.load(Ordering::Acquire) == 0;
//!     seen.note(if early { "early" } else { "late" });
//!     writer.join().expect("the writer does not panic");
//! });
//! ```

pub mod sync;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, process, thread};

/// Maximum number of preemptions in a schedule.
const PREEMPTIONS_MAX: usize = 3;

/// Maximum number of branching points of an execution; more mean that a loop does not end.
const BRANCHES_MAX: usize = 10_000;

/// The variable that loom takes another number of branches from.
const GIVEN_BRANCHES: &str = "LOOM_MAX_BRANCHES";

/// The variable that `mutate` sets: one failing model is enough to know there, so it ends the whole run.
const ENDS_AT_FAILURE: &str = "MODELS_END_AT_FAILURE";

/// The outcomes that a model has seen, over all executions, and how many those were.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<(BTreeSet<&'static str>, usize)>>);

impl Seen {
    /// Notes an outcome of this execution.
    pub fn note(&self, outcome: &'static str) {
        self.with(|(outcomes, _)| {
            outcomes.insert(outcome);
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut (BTreeSet<&'static str>, usize)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Explores a model, which must take at least `executions_min` executions and see exactly these outcomes.
///
/// The model runs once for each execution, and starts from nothing each time. It may have at most four threads
/// beside its own. How many executions there were and which outcomes they saw is printed.
///
/// # Panics
///
/// If an execution panics, deadlocks or takes too many branches, if there were fewer executions than `executions_min`,
/// or if an outcome was not seen or another was. With `MODELS_END_AT_FAILURE` in the environment the process ends then,
/// with exit code 1.
pub fn explore(
    executions_min: usize,
    outcomes: &[&'static str],
    model: impl Fn(&Seen) + Sync + Send + 'static,
) {
    let _failure = Failure;
    let seen = Seen::default();
    let noted = seen.clone();
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS_MAX));
    if env::var_os(GIVEN_BRANCHES).is_none() {
        builder.max_branches = BRANCHES_MAX;
    }
    builder.check(move || {
        noted.with(|(_, executions)| *executions += 1);
        model(&noted);
    });
    let (saw, executions) = seen.with(|seen| seen.clone());
    println!("{executions} executions saw {saw:?}");
    assert!(
        executions >= executions_min,
        "{executions} executions, {executions_min} expected at least"
    );
    assert_eq!(saw, outcomes.iter().copied().collect());
}

/// Lives as long as a model is explored.
struct Failure;

impl Drop for Failure {
    fn drop(&mut self) {
        if thread::panicking() && env::var_os(ENDS_AT_FAILURE).is_some() {
            process::exit(1);
        }
    }
}
