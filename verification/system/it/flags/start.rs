//! Command lines: flags without effect, refused flags, and versions.

use std::process::{Command, Output};

use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::{ADMIN, Folder, ask, port};
use crate::support::server::Server;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwatch"));
    command.arg("serve").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn flags_without_effect_are_told_once() {
    let (server, _) = Server::ready(&[
        "--storage-backend=memory",
        "--contention_profiling",
        "--etcd-count-metric-poll-period=30s",
        "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA",
    ])
    .await;
    let log = server.log();
    for notice in [
        "--contention-profiling has no effect here: there is no Go runtime to profile",
        "--etcd-count-metric-poll-period has no effect here: objects are counted once a minute",
        "cipher suite TLS_RSA_WITH_RC4_128_SHA is insecure, and not available here",
    ] {
        assert_eq!(log.matches(notice).count(), 1, "{notice}: {log}");
    }
    assert_eq!(log.matches("no effect").count(), 2, "{log}");
}

#[tokio::test]
async fn the_steps_of_a_start_show_as_kube_apiservers_checks() {
    let folder = Folder::new();
    let server = folder.serve(&[]).await;
    for (root, own) in [
        ("healthz", "etcd"),
        ("livez", "etcd"),
        ("readyz", "informer-sync"),
    ] {
        let line = format!("GET /{root}?verbose=1");
        let passed = eventually(DEADLINE, root, async || {
            let answer = ask(port(&server), &line, ADMIN).await;
            answer.starts_with("HTTP/1.1 200").then_some(answer)
        });
        let answer = passed.await;
        for check in [
            "ping",
            "log",
            own,
            "autoregister-completion",
            "poststarthook/bootstrap-controller",
            "poststarthook/kube-apiserver-autoregistration",
            "poststarthook/start-apiserver-admission-initializer",
            "poststarthook/apiservice-openapi-controller",
            "poststarthook/storage-readiness",
        ] {
            assert!(
                answer.contains(&format!("[+]{check} ok\n")),
                "{check}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn log_lines_are_json_if_that_is_asked_for() {
    let (server, _) = Server::ready(&[
        "--storage-backend=memory",
        "--logging-format=json",
        "--contention-profiling=false",
        "-v=1",
    ])
    .await;
    let log = server.log();
    // Whatever follows the last end of a line is still being written.
    let (whole, _) = log.rsplit_once('\n').unwrap();
    let lines = whole.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let notice = lines.iter().find(|line| {
        line["msg"]
            .as_str()
            .is_some_and(|it| it.starts_with("--contention-profiling has no effect"))
    });
    assert_eq!(notice.unwrap_or_else(|| panic!("{log}"))["v"], 0);
}

#[test]
fn refused_and_wrong_flags_are_one_line() {
    for (flags, words) in [
        (
            &["--authorization-policy-file=x"][..],
            "write roles for the mode RBAC",
        ),
        (
            &["--emulated-version=1.35"],
            "emulation version 1.35 is not between [1.36, 1.36]",
        ),
        (&["--no-such-flag"], "--no-such-flag"),
        (
            &["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"],
            "HTTP/2-required",
        ),
    ] {
        let output = run(flags);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_version_is_printed() {
    let output = run(&["--version"]);
    assert!(output.status.success());
    let version = text(&output.stdout);
    assert!(version.starts_with("Kubernetes v1.36.2"), "{version}");
    assert_eq!(version.lines().count(), 1);
    let output = run(&["--version=raw"]);
    assert!(text(&output.stdout).starts_with("version.Info{Major:\"1\""));
    let output = run(&["--version=v1.35.0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("must match major/minor/patch"));
}
