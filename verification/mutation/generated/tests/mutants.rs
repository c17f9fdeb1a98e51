//! The command, run on a workspace of one small crate without dependencies.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ringwatch_testing::tools;
use tempfile::TempDir;

const MANIFEST: &str =
    "[workspace]\n\n[package]\nname = \"fixture\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"fixture\"\nversion = \"0.0.0\"\n";

/// An argument for the mutants of the estimate that no test catches.
const ARGUED: &str = "[[argued]]\nname = \"src/lib.rs: replace * with + in estimate\"\n\
     line = \"items * 2\"\nreason = \"An estimate need not be right.\"\n";

/// Makes a workspace of the fixture, with a list of argued mutants.
fn workspace(argued: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("src")).expect("a folder");
    for (file, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        (".gitignore", "/target\n"),
        ("argued.toml", argued),
        ("src/lib.rs", include_str!("fixture/lib.rs")),
    ] {
        fs::write(folder.path().join(file), text).expect("written");
    }
    let mut git = Command::new("git");
    let made = tools::run(git.args(["init", "--quiet"]).current_dir(folder.path()));
    assert!(made.status.success(), "git init");
    folder
}

/// Runs the command in a workspace, unless there is no cargo-mutants to list the mutants.
fn mutants(case: &str, workspace: &Path, filter: &[&str]) -> Option<Output> {
    let Some(lister) = tools::find("cargo-mutants") else {
        tools::skipped(case, "no cargo-mutants");
        return None;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = lister.parent().map(Path::to_owned).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mutants"));
    command
        .args(filter)
        .args(["--folder", "src", "--crate", "src/lib.rs"])
        .args(["--layer", "unit=test --lib", "--argued", "argued.toml"])
        .env("PATH", path.expect("folders"))
        .current_dir(workspace);
    Some(tools::run(&mut command))
}

/// Returns what a run reported.
fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn mutants_are_caught_missed_unviable_hang_or_are_argued() {
    let case = "mutants_are_caught_missed_unviable_hang_or_are_argued";
    let workspace = workspace(ARGUED);
    let Some(output) = mutants(case, workspace.path(), &[]) else {
        return;
    };
    let expected = "\
MISSED src/lib.rs:12:5: replace unchecked -> u32 with 0
    by 1 tests: 7
MISSED src/lib.rs:12:5: replace unchecked -> u32 with 1
    by 1 tests: 7
| folder | mutants | unviable | unit | of these by time-out | argued | missed | caught |
|---|---|---|---|---|---|---|---|
| src | 49 | 3 | 43 | 1 | 1 | 2 | 93.4 % |
| all | 49 | 3 | 43 | 1 | 1 | 2 | 93.4 % |
";
    assert_eq!(reported(&output), expected, "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn all_is_well_if_each_is_caught() {
    let case = "all_is_well_if_each_is_caught";
    let workspace = workspace("");
    let Some(output) = mutants(case, workspace.path(), &["in is_large"]) else {
        return;
    };
    let row = "| all | 3 | 0 | 3 | 0 | 0 | 0 | 100.0 % |\n";
    assert!(reported(&output).ends_with(row), "{output:?}");
    assert!(output.status.success());
}

#[test]
fn an_argument_for_a_mutant_that_is_caught_is_refused() {
    let case = "an_argument_for_a_mutant_that_is_caught_is_refused";
    let caught = ARGUED.replace("* with +", "* with /");
    let workspace = workspace(&caught);
    let Some(output) = mutants(case, workspace.path(), &[]) else {
        return;
    };
    let told = "argued, but gone or caught: src/lib.rs: replace * with / in estimate\n";
    assert!(reported(&output).contains(told), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}
