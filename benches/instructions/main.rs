//! A regression guard: how many instructions the hottest paths take, counted by callgrind, beside a
//! budget each. Counts do not depend on what else the machine does, so that a gate can hold to them.
//!
//! The program runs itself under valgrind, once for each path, which makes ready whatever the path
//! needs and counts nothing but the path. Without `--bench`, as in `cargo test`, each runs once and
//! nothing is counted.
//!
//! The budgets are those of the build of `benches/optimised.toml`. Counts of any other build are printed alone.
//!
//! gungraun does this too, but needs a runner of exactly its version, of 170 crates, on every machine.
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(unreachable_pub, reason = "nobody else uses it")]

#[path = "../support/lease.rs"]
mod lease;
mod paths;
#[path = "../support/world.rs"]
mod world;

use std::process::ExitCode;

use ringwatch_testing::callgrind;
use ringwatch_testing::instruction_budgets::{Counted, compare, renew, show};

use self::paths::PATHS;

/// The environment variable that `benches/optimised.toml` sets.
const OPTIMISED: &str = "RINGWATCH_OPTIMISED";

/// The folder of the package that has the budgets.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

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
    let counts = PATHS.iter().map(|path| Counted {
        name: path.name,
        instructions: callgrind::count(path.name) / path.times,
        allocated: None,
    });
    match (std::env::var_os(OPTIMISED).is_some(), given("--renew")) {
        (true, true) => renew(PACKAGE, counts),
        (true, false) => return compare(PACKAGE, counts),
        (false, _) => show(counts),
    }
    ExitCode::SUCCESS
}
