//! Clippy's two configurations have the same settings but for the types of the engine, and tasks are spawned only where
//! ARCHITECTURE.md says.
//!
//! Clippy reads one `clippy.toml` for a package, the nearest above it, and cannot include another.

use super::{is_for_tests, package_folders, read, relative, root, sources, without_tests};

/// The list that the engine's configuration alone has.
const OF_THE_ENGINE: &str = "disallowed-types = [";

/// Files and folders whose code may spawn tasks or start threads, as ARCHITECTURE.md says in its invariants.
const SPAWNING: &[&str] = &[
    "crates/filters/src/large_work.rs",
    "crates/http/src/listener.rs",
    "crates/load/src/",
    "crates/server/src/relay/run.rs",
    "crates/server/src/run/",
];

/// The calls that spawn a task or start a thread, on whatever they are called. Those of a child process have no
/// argument.
const SPAWNS: [&str; 5] = [
    ".spawn(",
    ".spawn_on(",
    ".spawn_blocking(",
    ".spawn_local(",
    "::spawn(",
];

#[test]
fn both_configurations_of_clippy_agree() {
    let settings = |file: &str| -> Vec<String> {
        let text = read(&root().join(file));
        let lines = text
            .lines()
            .filter(|it| !it.starts_with('#') && !it.is_empty());
        lines.map(str::to_owned).collect()
    };
    let (mut engine, crates) = (settings("clippy.toml"), settings("crates/clippy.toml"));
    let begin = engine.iter().position(|line| line == OF_THE_ENGINE);
    let begin = begin.expect("the engine's list of types");
    let length = engine[begin..].iter().position(|line| line == "]");
    engine.drain(begin..=begin + length.expect("the end of the list"));
    assert!(crates.iter().any(|line| line.contains("tokio::spawn")));
    assert_eq!(engine, crates, "clippy.toml and crates/clippy.toml");
}

#[test]
fn tasks_are_spawned_where_the_architecture_says() {
    let mut elsewhere = Vec::new();
    let mut spawning = 0;
    let packages = package_folders().into_iter();
    let packages = packages.filter(|it| it == root() || it.starts_with(root().join("crates")));
    for file in packages.flat_map(|it| sources(&it.join("src"))) {
        let name = relative(&file);
        let code = without_tests(&read(&file));
        if is_for_tests(&file) || !spawns(&code) {
            continue;
        }
        if SPAWNING.iter().any(|it| name.starts_with(it)) {
            spawning += 1;
        } else {
            elsewhere.push(name);
        }
    }
    assert!(spawning > 3, "{spawning} files spawn");
    assert!(
        elsewhere.is_empty(),
        "return a future instead, which the server spawns:\n{}",
        elsewhere.join("\n")
    );
}

#[test]
fn a_task_and_a_process_are_told_apart() {
    assert!(spawns("tasks.spawn(async {})") && spawns("Handle::current().spawn(\n    run,\n)"));
    assert!(!spawns("let child = Command::new(\"cargo\").spawn()?;"));
}

/// Returns true if code spawns a task or starts a thread.
fn spawns(code: &str) -> bool {
    let calls = |call: &&str| {
        let mut rests = code.split(*call).skip(1);
        rests.any(|rest| !rest.starts_with(')'))
    };
    SPAWNS.iter().any(calls)
}
