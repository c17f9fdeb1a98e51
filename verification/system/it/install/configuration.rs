//! Configuration files as the program takes, prints and checks them.

use std::fs;
use std::path::{Path, PathBuf};

use super::ringwatch;

const HEAD: &str = "apiVersion: ringwatch.io/v1alpha1\nkind: ServerConfiguration\n";

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path
}

/// Checks a configuration with these fields: the exit code, and what was said on standard error.
fn check(folder: &Path, fields: &str) -> (i32, String) {
    let path = written(folder, "config.yaml", &format!("{HEAD}{fields}"));
    let (code, _, error) = ringwatch(&["check-config", path.to_str().expect("a path")]);
    (code, error)
}

/// A certificate and its key, as files of these names.
fn pair(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let certificate = written(folder, &format!("{name}.crt"), &made.cert.pem());
    let key = made.signing_key.serialize_pem();
    (certificate, written(folder, &format!("{name}.key"), &key))
}

#[test]
fn all_files_that_are_wrong_are_named_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let ((certificate, _), (_, key)) = (pair(folder, "one"), pair(folder, "other"));
    let broken = written(folder, "broken.yaml", "apiVersion: v1\nkind: Pod\n");
    let (certificate, key, broken) = (certificate.display(), key.display(), broken.display());
    let fields = format!(
        "tlsCertFile: {certificate}\ntlsPrivateKeyFile: {key}\nencryptionProviderConfig: {broken}\n\
         admissionControlConfigFile: {broken}\ntracingConfigFile: {broken}\nauditPolicyFile: {broken}\n\
         etcdServers: ['https://127.0.0.1:1']\netcdCafile: {broken}\n"
    );
    let (code, error) = check(folder, &fields);
    assert_eq!(code, 1, "{error}");
    for words in [
        "one.crt",
        "use the encryption configuration",
        "use the admission configuration",
        "use the tracing configuration",
        "loading audit policy file",
        "--etcd-cafile",
    ] {
        let lines = error.lines().filter(|it| it.contains(words)).count();
        assert!(lines > 0, "{words:?} is not in:\n{error}");
    }
    assert_eq!(error.lines().count(), 6, "{error}");
    assert!(
        error.lines().all(|it| it.contains("config.yaml: cannot ")),
        "{error}"
    );
}

#[test]
fn good_files_pass_and_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (certificate, key) = pair(folder, "server");
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";
    let policy = written(folder, "policy.yaml", policy);
    let log = folder.join("audit.log");
    let fields = format!(
        "dataDir: {data}\ntlsCertFile: {certificate}\ntlsPrivateKeyFile: {key}\nclientCaFile: {certificate}\n\
         auditPolicyFile: {policy}\nauditLogPath: {log}\n",
        data = folder.join("data").display(),
        certificate = certificate.display(),
        key = key.display(),
        policy = policy.display(),
        log = log.display(),
    );
    assert_eq!(check(folder, &fields), (0, String::new()));
    assert!(
        !log.exists() && !folder.join("data").exists(),
        "nothing was made"
    );
}

#[test]
fn a_wrong_configuration_is_told_from_wrong_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (fields, words) in [
        (
            "noSuchField: 1\n",
            "config.yaml:3: noSuchField: there is no such field",
        ),
        (
            "requestTimeout: 0s\n",
            "--request-timeout must be longer than 0",
        ),
        ("tlsCertFile: a\n", "--tls-private-key-file"),
        ("egressSelectorConfigFile: a\n", "cannot be used here"),
    ] {
        let (code, error) = check(folder, fields);
        assert_eq!(code, 2, "{fields}: {error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(ringwatch(&["check-config", "/no/such/file"]).0, 2);
}

#[test]
fn the_files_of_a_relays_configuration_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "apiVersion: ringwatch.io/v1alpha1\nkind: RelayConfiguration\n";
    let path = written(folder.path(), "relay.yaml", text);
    let path = path.to_str().expect("a path");
    let (code, _, error) = ringwatch(&["check-config", path]);
    assert_eq!(code, 2, "the kubeconfig is required: {error}");
    fs::write(path, format!("{text}kubeconfig: /no/such/kubeconfig\n")).expect("written");
    let (code, _, error) = ringwatch(&["check-config", path]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("/no/such/kubeconfig"), "{error}");
    let broken = written(folder.path(), "broken.yaml", "kind: Pod\n");
    let fields = format!(
        "kubeconfig: /no/such/kubeconfig\ntracingConfigFile: {}\n",
        broken.display()
    );
    fs::write(path, format!("{text}{fields}")).expect("written");
    let (_, _, error) = ringwatch(&["check-config", path]);
    for words in ["/no/such/kubeconfig", "use the tracing configuration"] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_effective_configuration_has_the_file_the_flags_and_the_defaults() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(
        folder.path(),
        "c.yaml",
        &format!("{HEAD}securePort: 7\nv: 1\n"),
    );
    let path = path.to_str().expect("a path");
    let line = ["serve", "--config", path, "--v=3", "--print-config"];
    let (code, configuration, error) = ringwatch(&line);
    assert_eq!((code, error.as_str()), (0, ""));
    for line in ["securePort: 7", "v: 3", "watchCache: true"] {
        assert!(
            configuration.lines().any(|it| it == line),
            "{line}: {configuration}"
        );
    }
    fs::write(path, configuration).expect("written");
    assert_eq!(
        ringwatch(&["check-config", path]).0,
        0,
        "it can be read again"
    );
}
