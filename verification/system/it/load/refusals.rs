//! Refusals of the load generator, in one line, and its clean-up after interruptions.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::loading::{end, left_behind, start};
use crate::support::server::Server;

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
async fn a_file_that_cannot_be_written_is_found_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("no-such-folder/outcome");
    let nowhere = nowhere.to_str().expect("a path");
    let fine = folder.path().join("fine");
    // Nobody is there to be loaded, which is what a run would say first.
    let target = ["--server=http://127.0.0.1:1", "fanout"];
    for flag in ["--save", "--report"] {
        let other = if flag == "--save" {
            "--report"
        } else {
            "--save"
        };
        let fine = fine.to_str().expect("a path");
        let arguments = [&target[..], &[other, fine, flag, nowhere]].concat();
        refused(&arguments, 1, &["cannot write", nowhere]).await;
    }
    assert!(!fine.exists(), "a file without an outcome");
    fs::write(&fine, "the one before").expect("a file");
    let arguments = [&target[..], &["--save", fine.to_str().expect("a path")]].concat();
    refused(&arguments, 1, &["cannot connect"]).await;
    let left = fs::read_to_string(&fine).expect("the file");
    assert_eq!(left, "the one before");
}

/// Without an authority in flags and kubeconfig, those of the machine count.
#[tokio::test]
async fn authorities_of_the_machine_are_trusted() {
    let (server, client) = Server::ready(&[]).await;
    let kubeconfig = fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let mut config: serde_json::Value = serde_saphyr::from_str(&kubeconfig).expect("YAML");
    let cluster = &mut config["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].take();
    let authority = STANDARD.decode(authority.as_str().expect("an authority"));
    let trusted = server.folder().join("trusted.crt");
    fs::write(&trusted, authority.expect("base64")).expect("a file");
    let kubeconfig = server.folder().join("without-authority");
    fs::write(&kubeconfig, config.to_string()).expect("a kubeconfig");
    let nobody = server.folder().join("nobody.crt");
    fs::write(&nobody, "").expect("a file");
    let empty = tempfile::tempdir().expect("a folder");
    let load = async |authorities: &Path| {
        let length = ["--runs=1", "--duration=200ms", "--warm-up=0s", "get"];
        let environment = [
            ("KUBECONFIG", kubeconfig.as_path()),
            ("SSL_CERT_FILE", authorities),
            ("SSL_CERT_DIR", empty.path()),
        ];
        let output = end(start(&length, &environment)).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    assert_eq!(load(&trusted).await, (Some(0), String::new()));
    let (code, errors) = load(&nobody).await;
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("--certificate-authority"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert_eq!(left_behind(&client).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_namespace_that_exists_is_not_touched() {
    let (mut server, _) = Server::ready(&[]).await;
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
    let (server, client) = Server::ready(&[]).await;
    let kubeconfig = server.kubeconfig();
    let arguments = ["fanout", "--watchers=20", "--duration=60s", "--warm-up=60s"];
    for signal in ["INT", "TERM"] {
        let child = start(&arguments, &[("KUBECONFIG", &kubeconfig)]);
        let id = child.id().expect("a running load").to_string();
        eventually(DEADLINE, "a namespace is created", async || {
            !left_behind(&client).await.is_empty()
        })
        .await;
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
