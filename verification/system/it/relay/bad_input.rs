//! Kubeconfigs and upstreams that a relay cannot use: one line that says why, or errors that do.

use std::path::Path;
use std::process::Command;

use kube::config::Kubeconfig;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use ringwatch_testing::reserved_port::ReservedPort;
use serde_json::{Value, json};

use super::support::*;
use crate::certificates::Authority;
use crate::support::server::Server;

/// Runs a relay that must end at once, and returns its exit code and its only line.
fn fail(flags: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwatch"));
    command
        .args(["relay", "--secure-port=0", "--data-dir"])
        .arg(folder.path());
    let output = command.args(flags).output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("ringwatch: "), "{error}");
    (output.status.code(), error)
}

fn kubeconfig(server: &str, user: &Value) -> String {
    json!({"clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x"})
    .to_string()
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let exec =
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sign-in"}});
    let server = "https://127.0.0.1:1";
    let other = kubeconfig(server, &json!({}))
        .replace("\"current-context\":\"x\"", "\"current-context\":\"y\"");
    for (text, words) in [
        ("clusters: [\n".to_owned(), "kubeconfig"),
        (String::new(), "kubeconfig"),
        (kubeconfig(server, &exec), "exec plugin"),
        (kubeconfig("ftp://127.0.0.1", &json!({})), "ftp"),
        (kubeconfig("not a url", &json!({})), "not a url"),
        (other, "\"y\""),
        (
            kubeconfig(
                server,
                &json!({"client-certificate-data": "AAAA", "client-key-data": "AAAA"}),
            ),
            "certificate",
        ),
        (
            kubeconfig(server, &json!({"tokenFile": "/no/such/file"})),
            "/no/such/file",
        ),
        (kubeconfig(server, &json!({"token": "a\nb"})), "token"),
    ] {
        let path = write(folder.path(), "bad", &text).display().to_string();
        let (code, line) = fail(&["--kubeconfig", &path]);
        assert_eq!(code, Some(1), "{line}");
        assert!(line.contains(&path), "{line}");
        assert!(line.contains(words), "{words:?} is missing: {line}");
    }
    let (code, line) = fail(&["--kubeconfig", "/no/such/file"]);
    assert_eq!(code, Some(1), "{line}");
    assert!(line.contains("/no/such/file"), "{line}");
}

#[test]
fn wrong_flags_are_one_line() {
    for (flags, words) in [
        (&[][..], "--kubeconfig"),
        (
            &["--kubeconfig=x", "--cache=pods"][..],
            "PLURAL.VERSION[.GROUP]",
        ),
        (
            &["--kubeconfig=x", "--request-timeout=0s"],
            "--request-timeout",
        ),
        (
            &[
                "--kubeconfig=x",
                "--authentication-token-webhook-cache-ttl=soon",
            ],
            "soon",
        ),
        (&["--kubeconfig=x", "--no-such-flag"], "--no-such-flag"),
    ] {
        let (code, line) = fail(flags);
        assert_eq!(code, Some(2), "{line}");
        assert!(
            line.contains(words) && line.contains("ringwatch relay --help"),
            "{line}"
        );
    }
    let missing = fail(&["--kubeconfig=x", "--client-ca-file=/no/such/ca"]);
    assert_eq!(missing.0, Some(1), "{missing:?}");
}

/// Starts a relay in front of an upstream that cannot be used, and asserts that answers say why.
async fn says(kubeconfig: &Path, words: &str) -> Server {
    let mut relay = Server::relay(kubeconfig, &["--cache=configmaps.v1"]);
    // It starts, since an upstream may come later.
    relay.client().await;
    let client = admin(&relay).await;
    for path in [
        "/version",
        CONFIG_MAPS,
        "/api/v1/configmaps?resourceVersion=0",
        "/api/v1/secrets",
    ] {
        // At first it may say that nobody listens yet.
        eventually(DEADLINE, format!("{path} says {words:?}"), async || {
            let answer = get(&client, path).await;
            assert_eq!(answer.status, 503, "{path}: {answer:?}");
            answer.text().contains(words).then_some(()).ok_or(answer)
        })
        .await;
    }
    relay
}

#[tokio::test]
async fn an_upstream_that_is_not_there_yet_is_waited_for() {
    let (mut upstream, _) = Server::ready(&[]).await;
    upstream.kill();
    let relay = says(&upstream.kubeconfig(), "connection refused").await;
    upstream.start_again();
    let direct = upstream.client().await;
    create(&direct, CONFIG_MAPS, &config_map("a")).await;
    let relayed = admin(&relay).await;
    eventually(DEADLINE, "the relay serves it", async || {
        let list = get(&relayed, &format!("{CONFIG_MAPS}?resourceVersion=0")).await;
        list.status == 200 && list.names() == ["a"]
    })
    .await;
}

#[tokio::test]
async fn an_address_where_nobody_is_or_that_is_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let free = ReservedPort::new();
    for (server, words) in [
        (
            format!("https://127.0.0.1:{}", free.number()),
            "connection refused",
        ),
        ("https://no-such-host.invalid:1".to_owned(), "no such host"),
    ] {
        let text = kubeconfig(&server, &json!({"token": "t"}));
        says(&write(folder.path(), "kubeconfig", &text), words).await;
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("servers");
    let sign = |names: &[&str], until: i32| {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &authority.issuer).unwrap();
        (signed.pem(), key.serialize_pem())
    };
    let other = Authority::new("others").pem;
    for (names, until, trusted, words) in [
        (
            &["127.0.0.1", "localhost"][..],
            2021,
            &authority.pem,
            "certificate has expired",
        ),
        (
            &["example.com"],
            2100,
            &authority.pem,
            "certificate is not valid for 127.0.0.1",
        ),
        (
            &["127.0.0.1", "localhost"],
            2100,
            &other,
            "certificate signed by unknown authority",
        ),
    ] {
        let (certificate, key) = sign(names, until);
        let flags = [
            format!(
                "--tls-cert-file={}",
                write(folder.path(), "crt", &certificate).display()
            ),
            format!(
                "--tls-private-key-file={}",
                write(folder.path(), "key", &key).display()
            ),
        ];
        let upstream = Server::start(&[&flags[0], &flags[1]]);
        let known = eventually(DEADLINE, "it has written its kubeconfig", async || {
            Kubeconfig::read_from(upstream.kubeconfig())
        });
        let known = known.await;
        let mut known = serde_json::to_value(known).unwrap();
        let cluster = known["clusters"][0]["cluster"].as_object_mut().unwrap();
        cluster.remove("certificate-authority-data");
        let trusted = write(folder.path(), "trusted", trusted);
        cluster.insert("certificate-authority".to_owned(), json!(trusted));
        cluster.remove("tls-server-name");
        let kubeconfig = write(folder.path(), "kubeconfig", &known.to_string());
        says(&kubeconfig, words).await;
    }
}
