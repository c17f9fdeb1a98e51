//! Runs this program again under callgrind, which counts what happens inside of one function.

use std::fs;
use std::hint::black_box;
use std::process::{Command, Stdio};

/// The function inside of which is counted, whose name is mangled.
const COUNTED: &str = "*collect_instructions*";

/// Says which path is to be run under valgrind.
const ARGUMENT: &str = "--counted=";

/// Whether valgrind can be run.
pub fn is_here() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// The path that this process is to run, if valgrind runs it.
pub fn counted_path(arguments: &[String]) -> Option<&str> {
    arguments
        .iter()
        .find_map(|argument| argument.strip_prefix(ARGUMENT))
}

/// What is counted happens in here.
#[inline(never)]
pub fn collect_instructions(path: &mut dyn FnMut()) {
    path();
    // So that the call above is not the last thing done, which would be a jump out of here.
    black_box(());
}

/// How many instructions a path takes.
pub fn count(name: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callgrind");
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe().unwrap())
        .arg(format!("{ARGUMENT}{name}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{name}: {said}");
    let counts = fs::read_to_string(file).unwrap();
    let totals = counts
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    let counted = totals.unwrap().trim().parse().unwrap();
    assert_ne!(counted, 0, "{name}: nothing was counted: {said}");
    counted
}
