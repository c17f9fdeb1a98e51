//! The checks against a server that keeps its promises, and against one that breaks a single one.

mod model;
mod mutations;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::checks::check;
use model::{Step, WATCHERS, play, steps};

const CASES: u32 = 512;

/// Returns the configuration of tests that draw new cases in each run and write none beside the source.
fn config(cases: u32) -> Config {
    Config {
        source_file: Some(file!()),
        ..Config::with_cases(cases)
    }
}

/// Asserts that nothing is wrong with a history of these steps, whoever is left to tell it.
fn breaks_no_rule(steps: &[Step], witnesses: &[bool]) -> Result<(), TestCaseError> {
    let mut history = play(steps);
    let mut witnesses = witnesses.iter();
    history
        .watchers
        .retain(|_| witnesses.next() != Some(&false));
    let checked = check(&history);
    let found = &checked.violations;
    prop_assert!(found.is_empty(), "{}", found[0]);
    for (watcher, tally) in history.watchers.iter().zip(&checked.tallies) {
        for count in [tally.initial, tally.changes] {
            let name = &watcher.name;
            prop_assert_eq!(count.expected, count.received, "{} {:?}", name, tally);
        }
    }
    Ok(())
}

#[test]
fn a_correct_history_breaks_no_rule() {
    let ran = TestRunner::new(config(CASES)).run(&steps(), |steps| breaks_no_rule(&steps, &[]));
    if let Err(TestError::Fail(reason, steps)) = ran {
        panic!("{reason}\nafter {steps:?}");
    }
}

/// Events that nobody can have seen are not held against anybody.
#[test]
fn a_correct_history_with_few_witnesses_breaks_no_rule() {
    let cases = (steps(), any::<[bool; WATCHERS]>());
    let ran = TestRunner::new(config(CASES)).run(&cases, |(steps, witnesses)| {
        breaks_no_rule(&steps, &witnesses)
    });
    if let Err(TestError::Fail(reason, (steps, witnesses))) = ran {
        panic!("{reason}\nseen by {witnesses:?} after {steps:?}");
    }
}
