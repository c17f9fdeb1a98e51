//! The command, run on a workspace of one small crate without dependencies.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// The most seconds that the models of the small crate may take with a mutation. They take a moment, and cargo another.
const MODELS_SECONDS_MAX: &str = "10";

/// The most time that a killed process may keep its connection, and that one that was not killed may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

const MANIFEST: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"models\"]\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"models\"\nversion = \"0.0.0\"\n";
const MEMBER: &str = "[package]\nname = \"models\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";

/// Makes a workspace with the fixture as its member `models`, whose list has one mutation.
fn workspace(name: &str, from: &str, to: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let source = include_str!("fixture/lib.rs");
    let mutations = format!(
        "[[mutation]]\nname = {name:?}\nmodel = \"models::\"\nfile = \"models/src/lib.rs\"\n\
         from = {from:?}\nto = {to:?}\n"
    );
    fs::create_dir_all(folder.path().join("models/src")).expect("folders");
    for (file, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("models/Cargo.toml", MEMBER),
        ("models/mutations.toml", &mutations),
        ("models/src/lib.rs", source),
    ] {
        fs::write(folder.path().join(file), text).expect("written");
    }
    folder
}

/// Runs the command in a workspace, with an address that the models may connect to.
fn mutate(workspace: &Path, listener: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mutate"))
        .args(["--member", "models", "--seconds", MODELS_SECONDS_MAX])
        .args(["--", "test", "--quiet", "--lib"])
        .env("LISTENER", listener)
        .current_dir(workspace)
        .output()
        .expect("the command runs")
}

/// Returns what a run printed: its results and its complaints.
fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_mutation_that_a_model_notices_is_refused() {
    let workspace = workspace("a difference", "one + other", "one - other");
    let output = mutate(workspace.path(), "");
    let expected = "refused    a difference\n1 of 1 refused\n".to_owned();
    assert_eq!(printed(&output), (expected, String::new()));
    assert!(output.status.success());
}

#[test]
fn a_mutation_that_no_model_notices_fails_the_run() {
    let from = "pub fn unchecked() -> u32 {\n    1";
    let workspace = workspace("two", from, "pub fn unchecked() -> u32 {\n    2");
    let output = mutate(workspace.path(), "");
    let (results, complaints) = printed(&output);
    assert_eq!(results, "UNNOTICED  two\n0 of 1 refused\n");
    assert_eq!(complaints, "1 mutations went unnoticed\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_mutation_whose_place_is_not_found_fails_the_run() {
    let workspace = workspace("a product", "one * other", "one");
    let output = mutate(workspace.path(), "");
    let (results, complaints) = printed(&output);
    assert_eq!(results, "");
    let expected = "a product: its place is found 0 times, and must be once\n";
    assert_eq!(complaints, expected);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn models_that_hang_are_killed_with_their_group_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let from = "pub fn hangs() -> bool {\n    false";
    let workspace = workspace("a hang", from, "pub fn hangs() -> bool {\n    true");
    let output = mutate(workspace.path(), &address);
    let expected = "timed out  a hang\n1 of 1 refused\ncaught by time-out after 10s: a hang\n";
    assert_eq!(printed(&output), (expected.to_owned(), String::new()));
    assert!(output.status.success());

    listener.set_nonblocking(true).expect("a socket");
    let connection = || -> TcpStream {
        let (stream, _) = listener.accept().expect("the models have connected");
        stream.set_nonblocking(false).expect("a socket");
        let bounded = stream.set_read_timeout(Some(ANSWER_TIME_MAX));
        bounded.expect("a time limit");
        stream
    };
    // The model connects the process of the other group first.
    let (mut other, mut stubborn) = (connection(), connection());
    let mut said = String::new();
    let ended = stubborn.read_to_string(&mut said);
    ended.expect("nothing of the group holds the connection any more");
    assert_eq!(said, "begun\n");
    other.write_all(b"there\n").expect("a connection");
    let mut answer = [0; 6];
    let answered = other.read_exact(&mut answer);
    answered.expect("the process of another group lives");
    assert_eq!(&answer, b"there\n");
}
