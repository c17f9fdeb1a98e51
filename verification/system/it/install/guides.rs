//! The guides of `docs/`, run from their own text by `scripts/guides`.

use std::process::Command;

use ringwatch_testing::recorded::checkout;

/// The guides that are run here. Those that build something are run by `scripts/test`.
const RUN: [&str; 5] = [
    "getting-started",
    "kubeadm",
    "load",
    "relay-managed",
    "testing",
];

/// The output of the runner, which must find nothing wrong.
fn guides(arguments: &[&str]) -> String {
    let mut command = Command::new(checkout().join("scripts/guides"));
    let command = command.args(["--ringwatch", env!("CARGO_BIN_EXE_ringwatch")]);
    let output = command.args(arguments).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{error}");
    // Cases that cannot run here are counted by their lines.
    eprint!("{said}");
    said
}

fn run(name: &str) {
    let said = guides(&[name]);
    let (ran, skipped) = (format!("ok    {name}: "), format!("SKIPPED guide {name}: "));
    // A line before it says so if it was run again for another port.
    assert!(
        said.lines()
            .any(|line| line.starts_with(&ran) || line.starts_with(&skipped)),
        "{said}"
    );
}

#[test]
fn getting_started() {
    run("getting-started");
}

#[test]
fn replacing_kube_apiserver_and_going_back() {
    run("kubeadm");
}

#[test]
fn loading_a_cluster() {
    run("load");
}

#[test]
fn a_relay_in_front_of_a_managed_cluster() {
    run("relay-managed");
}

#[test]
fn programs_for_envtest() {
    run("testing");
}

#[test]
fn every_guide_is_run_somewhere() {
    let said = guides(&["--list"]);
    let quick = said.lines().filter(|it| !it.ends_with(" builds"));
    let quick: Vec<&str> = quick.map(str::trim).collect();
    assert_eq!(quick, RUN, "give each guide a test here");
}

#[test]
fn excerpts_are_what_the_files_say() {
    let said = guides(&["--excerpts"]);
    assert!(
        said.starts_with("ok    ") && !said.contains(" 0 excerpts"),
        "{said}"
    );
}
