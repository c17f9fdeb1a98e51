//! Programs that the tests drive: found, or named as skipped.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::recorded;

/// Reports that a case cannot run for want of a program that the set-up brings.
pub fn skipped(case: &str, why: &str) {
    recorded::skipped(case, &format!("{why}; run scripts/setup test"));
}

/// Returns a program in the checkout's tools or on PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let tools = recorded::checkout().join(".tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(tools)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Returns a kubectl of this minor version: `kubectl.1.NN` beside the one on PATH, or that one itself.
pub fn kubectl(minor: u32) -> Option<PathBuf> {
    let installed = find("kubectl")?;
    let beside = installed
        .canonicalize()
        .ok()?
        .with_file_name(format!("kubectl.1.{minor}"));
    if beside.is_file() {
        return Some(beside);
    }
    let version = run(Command::new(&installed).args(["version", "--client", "--output=json"]));
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    text.contains(&format!("\"minor\": \"{minor}\""))
        .then_some(installed)
}

/// Runs a program to its end, with its output.
pub fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}
