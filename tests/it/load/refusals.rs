//! What must not be loaded is not, in one line, and whatever is interrupted is cleaned up.

use std::fs;
use std::time::Duration;

use super::loading::{end, left_behind, start};
use crate::support::server::Server;

/// How often a condition is looked at, and how many times at most: half a minute.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 600;

/// The load must end with this code and one line that contains all these words.
async fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = end(start(arguments, &[])).await;
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(output.stdout.is_empty(), "{line}");
    for word in words {
        assert!(line.contains(word), "{word:?} is missing: {line}");
    }
}

#[tokio::test]
async fn a_server_elsewhere_is_refused() {
    let server = ["--token=t", "--insecure-skip-tls-verify", "--server"];
    // These addresses belong to nobody; a guard that let them through would wait for an answer.
    for url in ["https://192.0.2.1:6443", "https://[2001:db8::1]:6443"] {
        let mut arguments = server.to_vec();
        arguments.extend([url, "fanout"]);
        refused(&arguments, 1, &["not this machine", "--i-own-this-cluster"]).await;
    }
}

#[tokio::test]
async fn an_exec_plugin_is_reported_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    let marker = folder.path().join("was-run");
    let kubeconfig = format!(
        "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]
users: [{{name: u, user: {{exec: {{command: touch, args: ['{}']}}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
",
        marker.display()
    );
    fs::write(&path, kubeconfig).expect("a kubeconfig");
    let path = path.to_str().expect("a path");
    refused(
        &["--kubeconfig", path, "fanout"],
        1,
        &["exec plugin", "--token"],
    )
    .await;
    assert!(!marker.exists(), "the plugin was run");
}

#[tokio::test]
async fn wrong_command_lines_are_told_apart() {
    for (arguments, word) in [
        (&["fanout", "--watchers=0"][..], "--watchers"),
        (&["fanout", "--rate=-1"], "--rate"),
        (&["no-such-scenario"], "no-such-scenario"),
        (&["fanout", "--duration=0s"], "--duration"),
    ] {
        refused(arguments, 2, &[word, "ringwatch load --help"]).await;
    }
    let nowhere = ["--kubeconfig=/nonexistent/config", "fanout"];
    refused(&nowhere, 1, &["/nonexistent/config"]).await;
}

#[tokio::test]
async fn a_namespace_that_exists_is_not_touched() {
    let mut server = Server::start(&[]);
    server.client().await;
    let kubeconfig = server.kubeconfig();
    let kubeconfig = kubeconfig.to_str().expect("a path");
    let arguments = ["--kubeconfig", kubeconfig, "--namespace=default", "fanout"];
    refused(
        &arguments,
        1,
        &["create the namespace default", "already exists"],
    )
    .await;
    let client = server.client().await;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client);
    let default = namespaces.get("default").await.expect("the namespace");
    assert_eq!(default.metadata.deletion_timestamp, None);
}

#[tokio::test]
async fn an_interrupted_load_cleans_up() {
    let mut server = Server::start(&[]);
    let client = server.client().await;
    let kubeconfig = server.kubeconfig();
    let arguments = ["fanout", "--watchers=20", "--duration=60s", "--warm-up=60s"];
    for signal in ["INT", "TERM"] {
        let child = start(&arguments, &[("KUBECONFIG", &kubeconfig)]);
        let id = child.id().expect("a running load").to_string();
        let mut looks = 0;
        while left_behind(&client).await.is_empty() {
            looks += 1;
            assert!(looks < LOOKS_MAX, "no namespace was created");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let kill = std::process::Command::new("kill");
        let sent = { kill }.args([&format!("-{signal}"), &id]).status();
        assert!(sent.expect("kill").success());
        let output = end(child).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert_eq!(errors, "ringwatch: interrupted\n");
        assert_eq!(left_behind(&client).await, Vec::<String>::new());
    }
}
