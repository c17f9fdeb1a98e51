//! Files of `--config`: their fields as flags, and errors with their places.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tempfile::TempDir;

use super::*;
use crate::config::flags::{RelayFlags, ServeFlags};

#[derive(Parser, Debug)]
#[command(name = "ringwatch")]
struct Line {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand, Debug)]
enum Sub {
    Serve(Box<ServeFlags>),
    Relay(Box<RelayFlags>),
}

const HEAD: &str = "apiVersion: ringwatch.io/v1alpha1\nkind: ServerConfiguration\n";

/// A file, deleted when it is dropped.
struct Written {
    path: PathBuf,
    _folder: TempDir,
}

fn written(text: &str) -> Written {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).expect("written");
    Written {
        path,
        _folder: folder,
    }
}

fn words(text: &str, subcommand: &str, flags: &[&str]) -> Result<Vec<String>, String> {
    let file = written(text);
    let path = file.path.display().to_string();
    let line = ["ringwatch", subcommand, "--config", &path];
    let line = line.iter().chain(flags).map(OsString::from).collect();
    let line = with_file(&Line::command(), line);
    let line = line.map_err(|error| error.to_string().replace(&path, "FILE"))?;
    let line = line.into_iter().map(|it| it.into_string().expect("text"));
    Ok(line.map(|it| it.replace(&path, "FILE")).collect())
}

/// The flags that `serve` has of the fields after the head of a file, and of a command line.
fn serve(fields: &str, flags: &[&str]) -> Result<ServeFlags, String> {
    let line = words(&format!("{HEAD}{fields}"), "serve", flags)?;
    let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
    match line.command {
        Sub::Serve(flags) => Ok(*flags),
        Sub::Relay(_) => Err("a relay".to_owned()),
    }
}

#[test]
fn fields_are_flags_and_flags_of_the_line_replace_them() {
    let fields = "securePort: 1234\nwatchCache: false\nrequestTimeout: 30s\nv: 2\ncontentionProfiling: true\n\
                  etcdServers: ['http://a:1', 'http://b:2']\nhttp2MaxStreamsPerConnection: 7\n";
    let flags = serve(fields, &[]).expect("flags");
    assert_eq!(flags.serving.secure_port, 1234);
    assert!(!flags.watch_cache);
    assert_eq!(flags.limits.request_timeout.as_secs(), 30);
    assert_eq!(flags.verbosity, 2);
    assert_eq!(flags.etcd.etcd_servers, ["http://a:1", "http://b:2"]);
    assert_eq!(flags.serving.http2_max_streams_per_connection, 7);
    assert_eq!(flags.notices().len(), 1, "that flag has no effect");
    let flags = serve(fields, &["--secure-port=1", "--etcd-servers=http://c:3"]).expect("flags");
    assert_eq!(flags.serving.secure_port, 1);
    assert_eq!(
        flags.etcd.etcd_servers,
        ["http://c:3"],
        "a list is replaced as a whole"
    );
    assert!(!flags.watch_cache);
}

#[test]
fn half_of_a_pair_may_stand_in_the_file() {
    let flags = serve("tlsCertFile: a\n", &["--tls-private-key-file=b"]).expect("flags");
    assert!(flags.tls.tls_cert_file.is_some() && flags.tls.tls_private_key_file.is_some());
    let error = serve("tlsCertFile: a\n", &[]).expect_err("half");
    assert!(error.contains("--tls-private-key-file"), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_path() {
    for (fields, expected) in [
        (
            "v: 1\nsecurPort: 1\n",
            "FILE:4: securPort: there is no such field",
        ),
        (
            "secure-port: 1\n",
            "FILE:3: secure-port: there is no such field; write securePort",
        ),
        ("config: x\n", "FILE:3: config: there is no such field"),
        (
            "securePort: '1'\n",
            "FILE:3: securePort: it must be a number",
        ),
        (
            "securePort: 70000\n",
            "FILE:3: securePort: 70000 is not in 0..=65535",
        ),
        (
            "watchCache: 'yes'\n",
            "FILE:3: watchCache: it must be true or false",
        ),
        (
            "requestTimeout: 60\n",
            "FILE:3: requestTimeout: it must be a string",
        ),
        (
            "requestTimeout: 60x\n",
            "FILE:3: requestTimeout: \"60x\" is not a duration",
        ),
        (
            "etcdServers: http://a:1\n",
            "FILE:3: etcdServers: it must be a list",
        ),
        (
            "etcdServers: []\n",
            "FILE:3: etcdServers: the list is empty",
        ),
        (
            "etcdServers:\n- http://a:1\n- 7\n",
            "FILE:5: etcdServers[1]: it must be a string",
        ),
        (
            "etcdServers:\n- 'http://a:1,http://b:2'\n",
            "FILE:4: etcdServers[0]: it has a comma",
        ),
        (
            "etcdServers:\n- {a: 1}\n",
            "FILE:4: etcdServers[0]: it must be a string",
        ),
        ("dataDir:\n", "FILE:3: dataDir: it must be a string"),
        ("v: 1\nv: 2\n", "FILE:4: duplicate mapping key: v"),
        ("v: [\n", "FILE:"),
        (
            "kind: ServerConfiguration\n",
            "FILE:3: duplicate mapping key: kind",
        ),
    ] {
        let error = serve(fields, &[]).expect_err(fields);
        assert!(error.starts_with(expected), "{error:?} for {fields:?}");
    }
}

#[test]
fn another_kind_or_version_is_refused() {
    for (text, expected) in [
        (
            "kind: ServerConfiguration\n",
            "FILE:1: write apiVersion: ringwatch.io/v1alpha1",
        ),
        (
            "apiVersion: v1\nkind: ServerConfiguration\n",
            "FILE:1: there is no such apiVersion",
        ),
        (
            "apiVersion: ringwatch.io/v1alpha1\n",
            "FILE:1: write kind: ",
        ),
        (
            "apiVersion: ringwatch.io/v1alpha1\nkind: Pod\n",
            "FILE:2: there is no such kind",
        ),
        (
            "apiVersion: ringwatch.io/v1alpha1\nkind: RelayConfiguration\n",
            "FILE:2: the kind RelayConfiguration is for ringwatch relay",
        ),
        ("- 1\n", "FILE:1: "),
        ("", "FILE:1: "),
    ] {
        let error = words(text, "serve", &[]).expect_err(text);
        assert!(error.starts_with(expected), "{error:?} for {text:?}");
    }
    let line = ["ringwatch", "serve", "--config=/no/such/file"].map(OsString::from);
    let error = with_file(&Line::command(), line.to_vec()).expect_err("no file");
    assert!(
        error
            .to_string()
            .contains("cannot read the configuration /no/such/file")
    );
}

#[test]
fn a_relay_has_fields_of_its_own() {
    let text = "apiVersion: ringwatch.io/v1alpha1\nkind: RelayConfiguration\nkubeconfig: up\ncache: [pods.v1]\n";
    let line = words(text, "relay", &[]).expect("words");
    let expected = [
        "ringwatch",
        "relay",
        "--kubeconfig=up",
        "--cache=pods.v1",
        "--config",
        "FILE",
    ];
    assert_eq!(line, expected);
    Line::try_parse_from(line).expect("a required flag may be a field");
    let error = words(&format!("{text}etcdServers: [x]\n"), "relay", &[]).expect_err("a server's");
    assert!(
        error.starts_with("FILE:5: etcdServers: there is no such field"),
        "{error}"
    );
}

#[test]
fn a_line_without_a_file_stays_as_it_is() {
    for line in [
        &["ringwatch"][..],
        &["ringwatch", "serve", "--no-such"],
        &["ringwatch", "store"],
    ] {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_eq!(
            with_file(&Line::command(), line.clone()).expect("a line"),
            line
        );
    }
}

#[test]
fn the_effective_configuration_is_a_file_of_the_same_meaning() {
    let printed = |line: Vec<String>| {
        let matches = Line::command().get_matches_from(line);
        let (name, matches) = matches.subcommand().expect("a subcommand");
        ServeFlags::from_arg_matches(matches).expect("flags");
        let kind = ConfigKind::of_subcommand(name).expect("a kind");
        effective(&Line::command(), kind, matches).expect("text")
    };
    let fields = "securePort: 1234\nadvertiseAddress: '::1'\netcdServers: ['http://a:1']\nquotaBackendBytes: -1\n\
                  goawayChance: 0.01\nprofiling: false\n";
    let first = printed(words(&format!("{HEAD}{fields}"), "serve", &["--v=3"]).expect("words"));
    for line in [
        "apiVersion: ringwatch.io/v1alpha1",
        "kind: ServerConfiguration",
        "securePort: 1234",
        "v: 3",
        "requestTimeout: 1m",
        "quotaBackendBytes: -1",
        "watchCache: true",
        "profiling: false",
    ] {
        assert!(
            first.lines().any(|it| it == line),
            "{line:?} is not in\n{first}"
        );
    }
    assert!(
        !first.contains("apiserverCount"),
        "flags without effect are not printed"
    );
    let again = printed(words(&first, "serve", &[]).expect("words"));
    assert_eq!(first, again);
}

#[test]
fn every_flag_is_a_field_whose_default_has_its_type() {
    let command = Line::command();
    for kind in [ConfigKind::Server, ConfigKind::Relay] {
        let command = command
            .find_subcommand(kind.subcommand())
            .expect("a subcommand");
        let mut names: Vec<String> = FlagField::all(command).map(FlagField::name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "names of fields differ");
        assert!(
            names
                .iter()
                .all(|it| it.chars().all(|it| it.is_ascii_alphanumeric()))
        );
    }
}
