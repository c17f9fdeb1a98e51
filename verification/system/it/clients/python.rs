//! The Python client: its `watch.Watch` follows the changes of the writer, its dynamic client a definition, and a
//! controller with its informer and leader election does its work.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use ringwatch_testing::recorded::checkout;

use super::writer::CHANGES;
use crate::support::server::Server;
use crate::support::tools::{run, skipped};

#[tokio::test]
async fn the_dynamic_client_works_with_what_is_defined() {
    let Some(python) = python() else {
        return skipped(
            "the dynamic client of Python",
            "no Python with the kubernetes package",
        );
    };
    let (server, _) = Server::ready(&[]).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../verification/system/it/clients/dynamic.py");
    let output = run(Command::new(python).arg(script).arg(server.kubeconfig()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
}

#[tokio::test]
async fn a_controller_works_through_the_end_of_its_leader_and_of_the_server() {
    let Some(python) = python() else {
        return skipped(
            "a controller in Python",
            "no Python with the kubernetes package",
        );
    };
    let (mut server, _) = Server::ready(&[]).await;
    let kubeconfig = server.kubeconfig();
    control(&python, &kubeconfig, || {
        server.kill();
        server.start_again();
    });
}

#[tokio::test]
async fn a_controller_works_through_a_relay_whose_upstream_is_killed() {
    let Some(python) = python() else {
        return skipped(
            "a controller in Python behind a relay",
            "no Python with the kubernetes package",
        );
    };
    let (mut upstream, _) = Server::ready(&[]).await;
    let mut relay = Server::relay(&upstream.kubeconfig(), &[]);
    relay.client().await;
    control(&python, &relay.kubeconfig(), || {
        upstream.kill();
        upstream.start_again();
    });
}

/// Runs the controller to its end, and does something when it is half done.
fn control(python: &Path, kubeconfig: &Path, mut halfway: impl FnMut()) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../verification/system/it/clients/controller.py");
    let mut controller = Command::new(python)
        .arg(script)
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    let lines = BufReader::new(controller.stdout.take().expect("its output"));
    let mut said = Vec::new();
    for line in lines.lines() {
        let line = line.expect("a line");
        if line == "halfway" {
            halfway();
        }
        said.push(line);
    }
    assert!(controller.wait().expect("its end").success(), "{said:?}");
    assert_eq!(said, ["halfway", "done"]);
}

/// A Python that has the client: the one scripts/setup made, or the system's.
fn python() -> Option<PathBuf> {
    let own = checkout().join(".tools/python/bin/python");
    [own, PathBuf::from("python3")].into_iter().find(|python| {
        let import = Command::new(python)
            .args(["-c", "import kubernetes"])
            .output();
        import.is_ok_and(|output| output.status.success())
    })
}

/// A `watch.Watch` at work, whose output is read all the while: one that waits for room in a pipe falls behind.
pub(super) struct Follower(JoinHandle<Output>);

impl Follower {
    /// Follows the changes of a server from now on. Without a Python client the case is skipped.
    pub(super) fn start(case: &str, kubeconfig: &Path) -> Option<Self> {
        let Some(python) = python() else {
            skipped(case, "no Python with the kubernetes package");
            return None;
        };
        let follower = Command::new(python)
            .arg(
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("../../verification/system/it/clients/follow.py"),
            )
            .arg(kubeconfig)
            .arg(CHANGES.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python");
        let read = || follower.wait_with_output().expect("the follower's output");
        Some(Self(std::thread::spawn(read)))
    }

    /// Waits for its end, and checks that it saw every number once and in order. A list may come first; a later one
    /// must have missed nothing.
    pub(super) fn check(self) {
        let output = self.0.join().expect("the follower's output");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let mut seen = None;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let (kind, number) = line.split_once(' ').expect("a kind and a number");
            let number: u64 = number.parse().expect("a number");
            match (kind, seen) {
                ("list", None) => {}
                ("list", Some(before)) => {
                    assert_eq!(number, before, "a list found what no event told\n{errors}")
                }
                (_, before) => {
                    assert_eq!(number, before.unwrap_or_default() + 1, "the next change")
                }
            }
            seen = Some(number);
        }
        assert_eq!(seen, Some(CHANGES), "{errors}");
    }
}
