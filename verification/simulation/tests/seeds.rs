//! Runs of the simulation from fixed seeds. `verification/simulation/run` tries new ones.

use std::process::Command;

/// The seeds that are tried; `SIMULATION_SEEDS` sets another number of them. The gate tries more.
const SEEDS: u64 = 2;

fn simulate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(arguments)
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn the_same_seed_is_the_same_run() {
    let short = |seed| simulate(&[seed, "--seconds=5"]);
    let runs = ["1", "3"].map(short);
    assert_eq!(runs, ["1", "3"].map(short));
    assert_ne!(runs[0], runs[1]);
}

#[test]
fn promises_are_kept_whatever_fails() {
    let seeds = std::env::var("SIMULATION_SEEDS").ok();
    let seeds = seeds.and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    let said = simulate(&["1", "--seeds", &seeds.to_string()]);
    let sums = said.lines().last().unwrap_or_default();
    // A simulation in which nothing happens keeps all promises.
    assert!(sums.starts_with(&format!("{seeds} seeds, ")), "{said}");
    let crashes = sums
        .split(", ")
        .find_map(|part| part.strip_suffix(" crashes"));
    let crashes: u64 = crashes.and_then(|it| it.parse().ok()).expect("a number");
    assert!(crashes >= seeds.div_ceil(4), "{said}");
}

#[test]
fn a_plan_can_be_reduced() {
    let said = simulate(&["3", "--keep=1,2", "--seconds=5"]);
    assert!(said.contains("5 s, 2 faults: ok"), "{said}");
    let said = simulate(&["3", "--keep=", "--seconds=5"]);
    assert!(said.contains("5 s, 0 faults: ok"), "{said}");
}
