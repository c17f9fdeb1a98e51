//! Bad input to `ringwatch serve`: one line that says what is wrong and what to do, exit code 2
//! for a wrong command line and 1 for everything else, and nothing lost.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use ringwatch_testing::eventually::DEADLINE;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Runs the server, which must fail, and gives its exit code and its only line.
async fn fail(data_dir: &Path, flags: &[&str]) -> (i32, String) {
    let child = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
        .args(["serve", "--secure-port=0", "--data-dir"])
        .arg(data_dir)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary");
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output())
        .await
        .expect("an end in time")
        .expect("output");
    assert!(output.stdout.is_empty(), "{output:?}");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(error.lines().count(), 1, "{error}");
    let line = error.trim_end().to_owned();
    assert!(line.starts_with("ringwatch: "), "{line}");
    (output.status.code().expect("an exit code"), line)
}

/// The flags must fail with this code and a line that contains all these words.
async fn expect(data_dir: &Path, flags: &[&str], code: i32, words: &[&str]) {
    let (actual, line) = fail(data_dir, flags).await;
    assert_eq!(actual, code, "{line}");
    for word in words {
        assert!(line.contains(word), "{word:?} is missing: {line}");
    }
}

#[tokio::test]
async fn wrong_flags() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    for (flags, words) in [
        (&["--no-such-flag"][..], &["--no-such-flag", "--help"][..]),
        (
            &["--storage-backend=etcd2"],
            &["etcd2", "embedded, memory or etcd3"],
        ),
        (&["--storage-backend=etcd3"], &["--etcd-servers"]),
        (
            &["--storage-media-type=application/x"],
            &["or application/json"],
        ),
        (&["--request-timeout=1"], &["\"1\" is not a duration"]),
        (
            &["--authorization-mode=RBAC,ABAC"],
            &["RBAC, Webhook, AlwaysAllow or AlwaysDeny"],
        ),
        (&["--secure-port=x"], &["--secure-port"]),
    ] {
        expect(path, flags, 2, words).await;
    }
    assert_eq!(fs::read_dir(path).expect("entries").count(), 0);
}

#[tokio::test]
async fn audit_policies_that_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let log = "--audit-log-path=-";
    let none = "--audit-policy-file=/no/such/policy";
    let words = [
        "loading audit policy file: failed to read file path \"/no/such/policy\"",
        "--audit-policy-file",
    ];
    expect(path, &[log, none], 1, &words).await;
    let file = path.join("policy.yaml");
    let named = format!("--audit-policy-file={}", file.display());
    for (rules, words) in [
        ("[]", "loaded illegal policy with 0 rules: from file"),
        (
            "[{level: All}]",
            "rules[0].level: Unsupported value: \"All\"",
        ),
    ] {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n");
        fs::write(&file, text).expect("written");
        expect(path, &[log, &named], 1, &[words]).await;
    }
    let folder = format!("--audit-log-path={}", path.display());
    expect(path, &[&folder], 1, &["ensureLogFile", "Is a directory"]).await;
    let mode = ["--audit-log-path=-", "--audit-log-mode=no"];
    expect(
        path,
        &mode,
        2,
        &["invalid audit log mode no, allowed modes are"],
    )
    .await;
}

#[tokio::test]
async fn anybody_could_do_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("authentication.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
                anonymous: {enabled: true}\n";
    fs::write(&file, text).expect("written");
    let flag = format!("--authentication-config={}", file.display());
    let flags = [
        "--storage-backend=memory",
        &flag,
        "--authorization-mode=AlwaysAllow",
    ];
    let words = [
        "anonymous users are not allowed with the AlwaysAllow authorizer",
        "RBAC",
    ];
    expect(directory.path(), &flags, 1, &words).await;
}

#[tokio::test]
async fn an_occupied_port() {
    let directory = tempfile::tempdir().expect("a directory");
    let occupied = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = occupied.local_addr().expect("an address").port();
    let flag = format!("--secure-port={port}");
    let (code, line) = {
        let child = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
            .args(["serve", "--storage-backend=memory", &flag, "--data-dir"])
            .arg(directory.path())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(DEADLINE, child).await;
        let output = output.expect("an end in time").expect("output");
        let line = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), line)
    };
    assert_eq!(code, Some(1), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(
        line.contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{line}"
    );
    assert!(line.contains("choose another --secure-port"), "{line}");
}

#[tokio::test]
async fn an_unreachable_etcd() {
    let directory = tempfile::tempdir().expect("a directory");
    // Nobody listens here, while a port that was free may be another test's by now.
    let address = "127.0.0.1:1";
    let flag = format!("--etcd-servers=http://{address}");
    let words = ["cannot reach etcd", address, "--etcd-servers"];
    expect(directory.path(), &[&flag], 1, &words).await;
}

#[tokio::test]
async fn files_that_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let nonsense = path.join("nonsense");
    fs::write(&nonsense, "nonsense\n").expect("written");
    let nonsense = nonsense.to_str().expect("text");
    for (flag, words) in [
        ("--token-auth-file", &["line 1", "token,user,uid"][..]),
        ("--client-ca-file", &["no certificate", "PEM"]),
    ] {
        let data = path.join("data");
        expect(
            &data,
            &["--storage-backend=memory", flag, nonsense],
            1,
            words,
        )
        .await;
        let missing = path.join("missing");
        let missing = missing.to_str().expect("text");
        expect(
            &data,
            &["--storage-backend=memory", flag, missing],
            1,
            &[flag, missing],
        )
        .await;
    }
    let tls = [
        "--tls-cert-file",
        nonsense,
        "--tls-private-key-file",
        nonsense,
    ];
    expect(&path.join("data"), &tls, 1, &["no certificate", "PEM"]).await;
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "mine").expect("written");
    let words = ["cannot use the data directory", "--data-dir"];
    expect(&file, &[], 1, &words).await;
    expect(&file.join("below"), &[], 1, &words).await;
    assert_eq!(fs::read(&file).expect("read"), b"mine");

    let closed = directory.path().join("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("permissions");
    // The administrator of the machine may write everywhere, so there is nothing to see then.
    if fs::write(closed.join("probe"), "").is_err() {
        expect(&closed, &[], 1, &["cannot write", "--data-dir"]).await;
    } else {
        eprintln!("NOT RUN: an unwritable directory, since this user may write everywhere");
    }
}

/// A server that has announced itself; killed when dropped.
async fn start(data_dir: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringwatch"))
        .args(["serve", "--secure-port=0", "--data-dir"])
        .arg(data_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let announced = async {
        while let Some(line) = lines.next_line().await.expect("output") {
            if line.contains("kubectl --kubeconfig") {
                return;
            }
        }
        panic!("the server ended early");
    };
    tokio::time::timeout(DEADLINE, announced)
        .await
        .expect("a start in time");
    child
}

/// Ends a server in order.
async fn stop(mut child: Child) {
    let id = child.id().expect("a running server").to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().await;
    assert!(sent.expect("kill").success());
    let status = tokio::time::timeout(DEADLINE, child.wait())
        .await
        .expect("an end in time");
    assert_eq!(status.expect("a status").code(), Some(0));
}

#[tokio::test]
async fn a_database_that_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let database = path.join("store.redb");
    let server = start(path).await;
    expect(path, &[], 1, &["store.redb", "in use by another process"]).await;
    stop(server).await;

    // A crash can leave less than a regular end does, but never less than half.
    let whole = fs::read(&database).expect("a database");
    let third = &whole[..whole.len() / 3];
    fs::write(&database, third).expect("truncated");
    expect(path, &[], 1, &["store.redb", "restore it from a backup"]).await;
    assert_eq!(fs::read(&database).expect("a database"), third);

    fs::write(&database, &whole).expect("restored");
    stop(start(path).await).await;
    fs::write(&database, "mine\n".repeat(1000)).expect("written");
    expect(path, &[], 1, &["store.redb", "not a ringwatch database"]).await;
}
