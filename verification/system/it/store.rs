//! `ringwatch store` beside real servers: a snapshot while objects are written, a server on what is restored of it, and
//! the refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::server::Server;

/// The number of objects that are there before the snapshot.
const OBJECTS: usize = 50;
/// The number of further objects that are written before the snapshot is taken; the writer goes on until it is there.
const WRITES_BEFORE: usize = 20;

/// Runs `ringwatch store` with these arguments.
fn store(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwatch"));
    let output = command.arg("store").args(arguments).output();
    output.expect("the binary")
}

/// The same, which must succeed. Returns what it printed.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = store(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The same, which must fail with one line. Returns that.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let output = store(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors
}

pub(crate) fn status(arguments: &[&str]) -> Value {
    let text = done(&[&["status", "-o", "json"], arguments].concat());
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

pub(crate) async fn write(api: &Api<ConfigMap>, name: String) {
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("name".to_owned(), name)])),
        ..ConfigMap::default()
    };
    api.create(&PostParams::default(), &object)
        .await
        .expect("a write");
}

/// Reads the objects as they were at a revision, with their resource versions.
async fn objects(client: &Client, revision: u64) -> Vec<ConfigMap> {
    let api: Api<ConfigMap> = Api::all(client.clone());
    let at = ListParams::default()
        .at(&revision.to_string())
        .matching(kube::api::VersionMatch::Exact);
    api.list(&at).await.expect("a list").items
}

/// Takes a snapshot of a server while objects are written, and returns its revision.
async fn snapshot_under_writes(client: &Client, kubeconfig: &Path, file: &Path) -> u64 {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..OBJECTS {
        write(&api, format!("before-{number:02}")).await;
    }
    api.delete("before-00", &DeleteParams::default())
        .await
        .expect("deleted");
    let (written, is_there) = (AtomicUsize::new(0), AtomicBool::new(false));
    let taken = tokio::sync::Notify::new();
    let writing = async {
        while !is_there.load(Ordering::Relaxed) {
            let number = written.fetch_add(1, Ordering::Relaxed);
            write(&api, format!("during-{number}")).await;
            if number == WRITES_BEFORE {
                taken.notify_one();
            }
        }
    };
    let (kubeconfig, file) = (text(kubeconfig).to_owned(), text(file).to_owned());
    let taking = async {
        taken.notified().await;
        let arguments = ["snapshot", &file, "--kubeconfig", &kubeconfig].map(str::to_owned);
        let printed =
            tokio::task::spawn_blocking(move || done(&arguments.each_ref().map(String::as_str)));
        let printed = printed.await.expect("a snapshot");
        assert!(printed.contains("bytes"), "{printed}");
        is_there.store(true, Ordering::Relaxed);
    };
    tokio::join!(writing, taking);
    let revision = &status(&[&file])["revision"];
    revision.as_u64().expect("a revision")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_under_writes_is_restored_as_it_was() {
    let (server, client) = Server::ready(&[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("snapshot");
    let revision = snapshot_under_writes(&client, &server.kubeconfig(), &file).await;
    let expected = objects(&client, revision).await;
    assert!(
        expected.len() >= OBJECTS + WRITES_BEFORE,
        "{}",
        expected.len()
    );
    let printed = done(&["check", text(&file)]);
    assert!(printed.contains("FINDINGS  0\n"), "{printed}");
    let (mut restored, _) = Server::ready(&[]).await;
    // The store of another server is in its place, until that is gone.
    let data = restored.folder().join("data");
    let restoring = ["restore", text(&file), "--data-dir", text(&data)];
    let there = refused(&restoring);
    assert!(there.contains("there is a store already"), "{there}");
    restored.stop().await;
    fs::remove_file(data.join("store.redb")).expect("removed");
    let printed = done(&restoring);
    assert!(
        printed.contains(&format!("revision {revision}, ")),
        "{printed}"
    );
    let [of_snapshot, of_store] = [status(&[text(&file)]), status(&["--data-dir", text(&data)])];
    for member in ["revision", "compactedRevision", "keys", "digest"] {
        assert_eq!(of_snapshot[member], of_store[member], "{member}");
    }
    restored.start_again();
    let client = restored.client().await;
    assert_eq!(objects(&client, revision).await, expected);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    write(&api, "after".to_owned()).await;
}

#[tokio::test]
async fn a_store_that_nothing_serves_is_copied_checked_and_compacted() {
    let mut server = Server::start(&[]);
    let api: Api<ConfigMap> = Api::default_namespaced(server.client().await);
    for number in 0..OBJECTS {
        write(&api, format!("object-{number}")).await;
    }
    let (data, folder) = (server.folder().join("data"), server.folder().to_owned());
    let (data, file) = (text(&data), folder.join("snapshot"));
    let file = text(&file);
    for command in [
        &["status"][..],
        &["check"],
        &["snapshot", file],
        &["compact", "--revision", "5"],
    ] {
        let line = refused(&[command, &["--data-dir", data]].concat());
        assert!(line.contains("is served by a process; stop it"), "{line}");
    }
    server.stop().await;
    done(&["snapshot", file, "--data-dir", data]);
    let of_store = status(&["--data-dir", data]);
    assert_eq!(status(&[file])["digest"], of_store["digest"]);
    let revision = of_store["revision"].to_string();
    let printed = done(&["compact", "--revision", &revision, "--data-dir", data]);
    assert!(printed.contains(" before, "), "{printed}");
    let compacted = status(&["--data-dir", data]);
    assert_eq!(compacted["digest"], of_store["digest"]);
    assert_eq!(compacted["compactedRevision"], of_store["revision"]);
    let again = refused(&["compact", "--revision", &revision, "--data-dir", data]);
    assert!(again.contains("choose one after"), "{again}");
    let printed = done(&["check", "--data-dir", data]);
    assert!(printed.contains("FINDINGS  0\n"), "{printed}");
    server.start_again();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client().await);
    api.get("object-7").await.expect("an object");
}

/// Returns the path of a snapshot of a store with some objects, and its folder.
async fn snapshot() -> (TempDir, String) {
    let (server, _) = Server::ready(&[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = text(&folder.path().join("snapshot")).to_owned();
    done(&[
        "snapshot",
        &file,
        "--kubeconfig",
        text(&server.kubeconfig()),
    ]);
    (folder, file)
}

#[tokio::test]
async fn a_damaged_byte_of_a_snapshot_is_found() {
    let (folder, file) = snapshot().await;
    let mut bytes = fs::read(&file).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("a snapshot");
    let output = store(&["check", &file]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("do not add up to the SHA-256"),
        "{printed}"
    );
    let data = folder.path().join("data");
    let line = refused(&["restore", &file, "--data-dir", text(&data)]);
    assert!(line.contains("the snapshot is damaged"), "{line}");
    assert!(fs::read_dir(&data).expect("a folder").next().is_none());
}

/// The right to get the path is not the right to write to it.
#[tokio::test]
async fn a_snapshot_is_the_answer_to_a_get_alone() {
    let (_server, client) = Server::ready(&[]).await;
    for (method, status) in [("POST", 404), ("PUT", 404), ("GET", 200)] {
        let request = Request::builder()
            .method(method)
            .uri("/store/snapshot")
            .body(Body::empty())
            .expect("a request");
        let answer = client.send(request).await.expect("an answer");
        assert_eq!(answer.status(), status, "{method}");
    }
}

#[tokio::test]
async fn only_those_who_may_get_the_path_get_a_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens.csv");
    fs::write(&tokens, "secret,somebody,1,\"users\"\n").expect("a file");
    let (server, _) = Server::ready(&["--token-auth-file", text(&tokens)]).await;
    let admin = fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_saphyr::from_str(&admin).expect("a kubeconfig");
    kubeconfig["users"][0]["user"] = serde_json::json!({"token": "secret"});
    let path = folder.path().join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).expect("a file");
    let file = folder.path().join("snapshot");
    let line = refused(&["snapshot", text(&file), "--kubeconfig", text(&path)]);
    assert!(line.contains("answered 403"), "{line}");
    assert!(line.contains("/store/snapshot"), "{line}");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_as_such() {
    let [mut trusted, mut other] = [Server::start(&[]), Server::start(&[])];
    trusted.client().await;
    other.client().await;
    let admin = fs::read_to_string(trusted.kubeconfig()).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_saphyr::from_str(&admin).expect("a kubeconfig");
    let url = format!("https://127.0.0.1:{}", other.port());
    kubeconfig["clusters"][0]["cluster"]["server"] = url.into();
    let path = trusted.folder().join("other");
    fs::write(&path, kubeconfig.to_string()).expect("a file");
    let file = trusted.folder().join("snapshot");
    let line = refused(&["snapshot", text(&file), "--kubeconfig", text(&path)]);
    assert!(line.contains("its certificate is not trusted"), "{line}");
}

#[test]
fn mistakes_are_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let nothing = text(folder.path());
    let line = refused(&["status", "--data-dir", nothing]);
    assert!(
        line.contains("there is no store; name the data directory"),
        "{line}"
    );
    let missing = format!("{nothing}/missing");
    let line = refused(&["restore", &missing, "--data-dir", nothing]);
    assert!(line.contains("No such file"), "{line}");
    let line = refused(&["snapshot", &missing, "--kubeconfig", &missing]);
    assert!(line.contains("--kubeconfig"), "{line}");
    // A store, given as the file that the snapshot is written to.
    let other = format!("{nothing}/store.redb");
    fs::write(&other, "a store").expect("a file");
    let line = refused(&["snapshot", &other, "--kubeconfig", &missing]);
    assert!(line.contains("not a snapshot; name a new file"), "{line}");
    assert_eq!(fs::read(&other).expect("a file"), b"a store");
    let output = store(&["compact"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(errors.contains("see ringwatch store --help"), "{errors}");
}
