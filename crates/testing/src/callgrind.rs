//! Runs this program again under callgrind, which counts what happens inside of one function.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

/// The function inside of which is counted, whose name is mangled.
pub(crate) const COUNTED: &str = "*collect_instructions*";

/// The function at which a part of what is counted ends.
const MARK: &str = "*mark_instructions*";

/// Says which path is to be run under valgrind.
const ARGUMENT: &str = "--counted=";

/// Returns true if valgrind can be run.
pub fn is_here() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Returns the path that this process is to run, if valgrind runs it.
pub fn counted_path(arguments: &[String]) -> Option<&str> {
    arguments
        .iter()
        .find_map(|argument| argument.strip_prefix(ARGUMENT))
}

/// Runs the path whose instructions are counted.
#[inline(never)]
pub fn collect_instructions(path: &mut dyn FnMut()) {
    path();
    // So that the call above is not the last thing done, which would be a jump out of here.
    black_box(());
}

/// Runs a path whose instructions are counted apart.
pub fn collect_apart(path: &mut dyn FnMut()) {
    mark_instructions();
    path();
    mark_instructions();
}

#[inline(never)]
fn mark_instructions() {
    black_box(());
}

/// Returns how many instructions a path takes.
pub fn count(name: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callgrind");
    run(
        "callgrind",
        name,
        &[format!("--toggle-collect={COUNTED}")],
        &file,
    );
    total(&file)
}

/// Returns how many instructions each call of [`collect_apart`] takes, in their order.
pub fn count_calls(name: &str) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callgrind");
    run("callgrind", name, &[format!("--dump-before={MARK}")], &file);
    // A part ends where a call begins and where it ends, so every second one is a call.
    let calls = (1..).map(|call| file.with_extension((2 * call).to_string()));
    calls
        .take_while(|part| part.exists())
        .map(|part| total(&part))
        .collect()
}

/// Runs a path under a tool of valgrind, which writes to a file.
pub(crate) fn run(tool: &str, name: &str, options: &[String], file: &Path) {
    let run = Command::new("valgrind")
        .arg(format!("--tool={tool}"))
        .args(options)
        .arg(format!("--{tool}-out-file={}", file.display()))
        .arg(std::env::current_exe().unwrap())
        .arg(format!("{ARGUMENT}{name}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{name}: {said}");
}

/// Returns the instructions that a file of callgrind's counts.
fn total(file: &Path) -> u64 {
    let counts = fs::read_to_string(file).unwrap();
    let totals = counts
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let counted = totals.unwrap().trim().parse().unwrap();
    assert_ne!(counted, 0, "{}: nothing was counted", file.display());
    counted
}
