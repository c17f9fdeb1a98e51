//! `scripts/nextest` on planted tests that fail by chance, in a small workspace whose packages have the names of the project's.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The packages: two with tests of whole servers, and the engine.
const PACKAGES: [&str; 3] = ["ringwatch", "ringwatch-cli", "ringwatch-relay"];

/// The exit code of cargo nextest when tests failed.
const TESTS_FAILED: i32 = 100;

/// A workspace in which tests are planted.
struct Workspace(TempDir);

impl Workspace {
    /// Makes a workspace in which each package has the tests of the fixture as its binary `it`.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let members = PACKAGES.map(|it| format!("{it:?}")).join(", ");
        let junit = |profile| format!("[profile.{profile}.junit]\npath = \"junit.xml\"\n");
        let mut files = vec![
            (
                "Cargo.toml".to_owned(),
                format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n"),
            ),
            (
                ".config/nextest.toml".to_owned(),
                junit("default") + &junit("again"),
            ),
        ];
        let mut lock = "version = 4\n".to_owned();
        for name in PACKAGES {
            let package = format!("name = {name:?}\nversion = \"0.0.0\"\n");
            lock += &format!("\n[[package]]\n{package}");
            let manifest = format!("[package]\n{package}edition = \"2024\"\n");
            files.push((format!("{name}/Cargo.toml"), manifest));
            files.push((format!("{name}/src/lib.rs"), String::new()));
            let fixture = include_str!("fixture.rs").to_owned();
            files.push((format!("{name}/tests/it.rs"), fixture));
        }
        files.push(("Cargo.lock".to_owned(), lock));
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("written");
        }
        Self(folder)
    }

    /// Runs the tests, of which those of one package fail so many times, and returns the exit code and the tests that are named
    /// as flaky.
    fn run(&self, package: &str, failures: &[(&str, u32)]) -> (Option<i32>, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, times) in failures {
            fs::write(folder.path().join(name), times.to_string()).expect("written");
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/nextest");
        // The others' tests are there all the same, since the script asks for them by name.
        let output = Command::new(script)
            .args(["--offline", "-E", &format!("package(={package})")])
            .current_dir(self.0.path())
            .env("FAILURES", folder.path())
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("NEXTEST_PROFILE")
            .output();
        let Output { status, stdout, .. } = output.expect("the script runs");
        let said = String::from_utf8_lossy(&stdout);
        let flaky = said.lines().filter_map(|it| it.strip_prefix("FLAKY "));
        (status.code(), flaky.map(str::to_owned).collect())
    }
}

#[test]
fn tests_of_whole_servers_alone_may_fail_by_chance_and_two_at_most() {
    let workspace = Workspace::new();
    let failed = (Some(TESTS_FAILED), Vec::new());
    let flaky = |names: &[&str]| (Some(0), names.iter().map(ToString::to_string).collect());

    let all_pass = workspace.run("ringwatch-cli", &[]);
    assert_eq!(all_pass, flaky(&[]));

    let once = workspace.run("ringwatch-cli", &[("one", 1)]);
    assert_eq!(once, flaky(&["ringwatch-cli::it one"]));
    let both = workspace.run("ringwatch-relay", &[("one", 1), ("two", 1)]);
    let names = ["ringwatch-relay::it one", "ringwatch-relay::it two"];
    assert_eq!(both, flaky(&names));

    let all_three = [("one", 1), ("two", 1), ("three", 1)];
    assert_eq!(workspace.run("ringwatch-cli", &all_three), failed);
    let twice = workspace.run("ringwatch-cli", &[("one", 2)]);
    assert_eq!(twice, failed, "it must pass twice when it is run again");
    let engine = workspace.run("ringwatch", &[("one", 1)]);
    assert_eq!(engine, failed, "the engine depends on no chance");
    let conformance = workspace.run("ringwatch-relay", &[("four", 1)]);
    assert_eq!(conformance, failed, "nor does the conformance suite");
}
