//! Runs a target under libFuzzer, which has the function `main` and the options: the target is the one that
//! `RINGWATCH_FUZZ` names. `verification/fuzz/run` builds and runs it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ringwatch_fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    // The crate's hook would end the process for a panic that a parser catches. One that is not caught ends it anyhow.
    drop(std::panic::take_hook());
    let name = std::env::var("RINGWATCH_FUZZ").unwrap_or_default();
    let target = TARGETS.iter().find(|it| it.name == name);
    *target.unwrap_or_else(|| panic!("there is no target {name:?}"))
});

fuzz_target!(|input: &[u8]| {
    (TARGET.run)(input);
});
