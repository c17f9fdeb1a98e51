//! The checks against a server that keeps its promises, and against one that breaks a single one.

mod model;
mod mutations;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::checks::check;
use model::{play, steps};

const CASES: u32 = 512;

/// Cases are drawn anew in each run, and none is written beside the source.
fn config(cases: u32) -> Config {
    Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    }
}

#[test]
fn a_correct_history_breaks_no_rule() {
    let ran = TestRunner::new(config(CASES)).run(&steps(), |steps| {
        let found = check(&play(&steps));
        prop_assert!(found.is_empty(), "{}", found[0]);
        Ok(())
    });
    if let Err(TestError::Fail(reason, steps)) = ran {
        panic!("{reason}\nafter {steps:?}");
    }
}
