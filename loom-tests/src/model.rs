//! Exploring a model, and proving that it explored something.

#![allow(
    clippy::disallowed_types,
    reason = "what a model notes is not part of it"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, process, thread};

/// How many preemptions a schedule may have at most.
const PREEMPTIONS_MAX: usize = 3;

/// How many steps of an execution may go one way or another; more mean that a loop does not end.
const BRANCHES_MAX: usize = 10_000;

/// Set where one failing model is enough to know, as for a mutation: then it ends the whole run.
const ENDS_AT_FAILURE: &str = "MODELS_END_AT_FAILURE";

/// The outcomes that a model has seen, over all executions, and how many those were.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<(BTreeSet<&'static str>, usize)>>);

impl Seen {
    /// Notes an outcome of this execution.
    pub(crate) fn note(&self, outcome: &'static str) {
        self.with(|(outcomes, _)| {
            outcomes.insert(outcome);
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut (BTreeSet<&'static str>, usize)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Explores a model. It must take at least `floor` executions and see exactly these outcomes.
pub(crate) fn explore(
    floor: usize,
    outcomes: &[&'static str],
    model: impl Fn(&Seen) + Sync + Send + 'static,
) {
    let _failure = Failure;
    let seen = Seen::default();
    let noted = seen.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.max_branches = BRANCHES_MAX;
    builder.check(move || {
        noted.with(|(_, executions)| *executions += 1);
        model(&noted);
    });
    let (saw, executions) = seen.with(|seen| seen.clone());
    println!("{executions} executions saw {saw:?}");
    assert!(
        executions >= floor,
        "{executions} executions, {floor} expected at least"
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
