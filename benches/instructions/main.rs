//! A regression guard: how many instructions the hottest paths take, counted by callgrind, beside a
//! budget each. Counts do not depend on what else the machine does, so that a gate can hold to them.
//!
//! The program runs itself under valgrind, once for each path, which makes ready whatever the path
//! needs and counts nothing but the path. Without `--bench`, as in `cargo test`, each runs once and
//! nothing is counted.
//!
//! gungraun does this too, but needs a runner of exactly its version, of 170 crates, on every machine.
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(unreachable_pub, reason = "nobody else uses it")]

mod budgets;
#[path = "../support/lease.rs"]
mod lease;
mod paths;
#[path = "../support/world.rs"]
mod world;

use std::process::ExitCode;

use ringwatch_testing::callgrind;

use self::budgets::Budgets;
use self::paths::PATHS;

/// How far a budget lies above the count that it was made of.
const ROOM: f64 = 1.07;

/// A path that needs less than this part of its budget has become so cheap that the budget guards
/// nothing.
const LOOSE: f64 = 0.85;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    if let Some(name) = callgrind::counted_path(&arguments) {
        paths::named(name).run(&mut |path| callgrind::collect_instructions(path));
        return ExitCode::SUCCESS;
    }
    if given("--test") || !given("--bench") {
        PATHS.iter().for_each(|path| path.run(&mut |path| path()));
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_here() {
        println!("SKIPPED instructions: no valgrind; run scripts/setup gate");
        return ExitCode::SUCCESS;
    }
    if given("--renew") {
        let counts = PATHS.iter().map(|path| (path.name, count(path)));
        Budgets::of(counts, ROOM).save();
        return ExitCode::SUCCESS;
    }
    compare(&Budgets::read())
}

/// Counts every path and says which are over their budgets.
fn compare(budgets: &Budgets) -> ExitCode {
    let mut over = Vec::new();
    println!("{:24} {:>14} {:>14}", "path", "instructions", "budget");
    for path in PATHS {
        let (counted, budget) = (count(path), budgets.of_path(path.name));
        let part = counted as f64 / budget as f64;
        let verdict = match part {
            part if part > 1.0 => "OVER",
            part if part < LOOSE => "loose: renew it",
            _ => "",
        };
        println!(
            "{:24} {counted:>14} {budget:>14} {:>5.1} % {verdict}",
            path.name,
            part * 100.0
        );
        if part > 1.0 {
            over.push(path.name);
        }
    }
    if over.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!(
        "over their budgets: {}; CONTRIBUTING.md says what to do",
        over.join(", ")
    );
    ExitCode::FAILURE
}

/// Returns the instructions of one run of a path.
fn count(path: &paths::Path) -> u64 {
    callgrind::count(path.name) / path.times
}
