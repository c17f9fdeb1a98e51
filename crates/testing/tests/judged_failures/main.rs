//! `scripts/nextest` and the gate on planted tests that fail by chance, in a small workspace whose packages have the
//! names of the project's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The packages: two with tests of whole servers, and the engine.
const PACKAGES: [&str; 3] = ["ringwatch", "ringwatch-cli", "ringwatch-relay"];

/// The exit code of cargo nextest when tests failed.
const TESTS_FAILED: i32 = 100;

/// The root of the checkout.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The files that the gate needs besides the workspace, as they are in the checkout.
const GATE: [&str; 3] = [".ci/run", "scripts/environment", "scripts/nextest"];

/// Texts of the other scripts that the gate calls: there is nothing to install, and the tests are those of one package.
/// One test is of recorded material.
const SCRIPTS: [(&str, &str); 3] = [
    ("scripts/setup", "#!/bin/sh\n"),
    (
        "scripts/skipped-cases",
        "#!/bin/sh\n[ $# = 0 ] || echo \"package(=$PACKAGE) & test(=recorded)\"\n",
    ),
    (
        "scripts/test",
        "#!/bin/sh\nexec scripts/nextest --offline -E \"package(=$PACKAGE) - test(=recorded)\"\n",
    ),
];

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
        fs::create_dir(folder.path().join("shared")).expect("a folder");
        let workspace = Self(folder);
        for (file, text) in files {
            fs::write(workspace.file(&file), text).expect("written");
        }
        workspace
    }

    /// Commits the workspace and what the gate needs.
    fn commit(&self) {
        for file in GATE {
            let path = self.file(file);
            fs::copy(Path::new(ROOT).join(file), path).expect("copied");
        }
        for (file, text) in SCRIPTS {
            let path = self.file(file);
            fs::write(&path, text).expect("written");
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("may be run");
        }
        fs::write(self.file(".gitignore"), "/target\n/.tools\n").expect("written");
        let author = ["-c", "user.name=gate", "-c", "user.email=gate@example.com"];
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "--all"],
            &[&author[..], &["commit", "--quiet", "--message=planted"]].concat(),
        ] {
            let git = Command::new("git")
                .args(arguments)
                .current_dir(self.root())
                // Those of a git that runs the tests, as a hook, would have it commit to the checkout.
                .env_remove("GIT_DIR")
                .env_remove("GIT_INDEX_FILE")
                .env_remove("GIT_WORK_TREE")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .status();
            assert!(git.expect("git").success(), "{arguments:?}");
        }
    }

    /// The folder of the workspace, beside one for recorded material.
    fn root(&self) -> PathBuf {
        self.0.path().join("ringwatch")
    }

    /// The path of a file, in a folder that is there.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        path
    }

    /// Runs a script while the tests of one package fail so many times.
    fn while_failing(
        &self,
        script: &mut Command,
        package: &str,
        failures: &[(&str, u32)],
    ) -> Output {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, times) in failures {
            fs::write(folder.path().join(name), times.to_string()).expect("written");
        }
        script
            .current_dir(self.root())
            .env("FAILURES", folder.path())
            .env("PACKAGE", package)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("NEXTEST_PROFILE")
            .output()
            .expect("the script runs")
    }

    /// Runs the tests, of which those of one package fail so many times, and returns the exit code and the tests that
    /// are named as flaky.
    fn run(&self, package: &str, failures: &[(&str, u32)]) -> (Option<i32>, Vec<String>) {
        let mut script = Command::new(Path::new(ROOT).join("scripts/nextest"));
        // The others' tests are there all the same, since the script asks for them by name.
        script.args(["--offline", "-E", &format!("package(={package})")]);
        let Output { status, stdout, .. } = self.while_failing(&mut script, package, failures);
        let said = String::from_utf8_lossy(&stdout);
        let flaky = said.lines().filter_map(|it| it.strip_prefix("FLAKY "));
        (status.code(), flaky.map(str::to_owned).collect())
    }

    /// Runs steps of the gate, in which tests of one package fail once, and returns whether it passes, and its last
    /// line, without times.
    fn gate(&self, steps: &[&str], package: &str, failing: &[&str]) -> (bool, String) {
        let failures: Vec<_> = failing.iter().map(|name| (*name, 1)).collect();
        let mut script = Command::new(self.root().join(".ci/run"));
        let Output { status, stdout, .. } =
            self.while_failing(script.args(steps), package, &failures);
        let said = String::from_utf8_lossy(&stdout);
        let last = said.lines().last().unwrap_or_default();
        let words = last.split(' ').filter(|it| it.parse::<u32>().is_err());
        (status.success(), words.collect::<Vec<_>>().join(" "))
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

#[test]
fn the_gate_passes_with_a_flaky_test_of_a_whole_server_and_names_it() {
    let workspace = Workspace::new();
    workspace.commit();

    let (passes, last) = workspace.gate(&["tests"], "ringwatch-cli", &["one"]);
    assert_eq!(
        last,
        "=== tests passed in s; nothing skipped; FLAKY, to be mended first: ringwatch-cli::it one"
    );
    assert!(passes);

    for (package, failing) in [
        ("ringwatch", &["one"][..]),
        ("ringwatch-cli", &["one", "two", "three"]),
    ] {
        let (passes, last) = workspace.gate(&["tests"], package, failing);
        assert_eq!(last, "=== failed: tests (in s; nothing skipped)");
        assert!(!passes);
    }
}

#[test]
fn the_flaky_tests_of_all_steps_of_the_gate_are_counted_together() {
    let workspace = Workspace::new();
    workspace.commit();
    let steps = ["tests", "recorded"];

    let two = ["two", "recorded"];
    let (passes, last) = workspace.gate(&steps, "ringwatch-cli", &two);
    assert_eq!(
        last,
        "=== tests, recorded passed in s; nothing skipped; \
         FLAKY, to be mended first: ringwatch-cli::it two, ringwatch-cli::it recorded"
    );
    assert!(passes);

    let three = ["one", "two", "recorded"];
    let (passes, last) = workspace.gate(&steps, "ringwatch-cli", &three);
    let most =
        "=== failed: more than flaky tests (in s; nothing skipped; FLAKY, to be mended first: ";
    assert!(last.starts_with(most), "{last}");
    assert!(!passes);
}
