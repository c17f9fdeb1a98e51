//! The encryption configuration is read again while the server runs.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::json;

use super::kms::{health, provider, secret};
use super::kms_plugin::Plugin;
use super::{configure, create_both, flags, key, raw};
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

const RELOADS: &str = "apiserver_encryption_config_controller_automatic_reloads_total";
const LAST_RELOAD: &str =
    "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds";

fn secretbox(keys: &[(&str, &str)]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|(name, letter)| key(name, letter))
        .collect();
    format!("  - secretbox: {{keys: [{}]}}\n", keys.join(", "))
}

/// A server that reads its configuration again, and what it says of it.
struct Reloading {
    server: Server,
    client: Client,
    path: PathBuf,
}

impl Reloading {
    async fn start(etcd: &Etcd, path: &Path) -> Self {
        let (endpoint, config) = (etcd.endpoint(), path.display().to_string());
        let (server, _) = Server::ready(&[
            "--etcd-servers",
            &endpoint,
            "--encryption-provider-config",
            &config,
            "--encryption-provider-config-automatic-reload",
        ])
        .await;
        let mut config = server.config().await;
        // What is refused is not asked again.
        config.default_retry = false;
        let client = Client::try_from(config).expect("a client");
        let path = path.to_owned();
        Self {
            server,
            client,
            path,
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns the value of a metric of an outcome of reading the configuration again; 0 before the first.
    async fn metric(&self, name: &str, status: &str) -> f64 {
        let metrics = health(&self.client, "/metrics").await.expect("metrics");
        let start = format!("{name}{{status=\"{status}\",apiserver_id_hash=\"sha256:");
        let line = metrics.lines().find(|line| line.starts_with(&start));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until the configuration has been read again with an outcome that often.
    async fn until(&self, status: &str, count: f64) {
        let what = format!("{count} times {status}");
        let reached = eventually(DEADLINE, what, async || {
            self.metric(RELOADS, status).await >= count
        });
        reached.await;
    }

    /// Replaces the configuration at once, so that the server never reads a part of it.
    fn replace(&self, providers: &str) {
        let beside = self.path.with_extension("new");
        configure(&beside, providers);
        fs::rename(&beside, &self.path).expect("a file");
    }

    /// Replaces the configuration, and waits until it is used.
    async fn configure(&self, providers: &str) {
        let before = self.metric(RELOADS, "success").await;
        self.replace(providers);
        self.until("success", before + 1.0).await;
    }
}

#[tokio::test]
async fn keys_change_without_a_restart() {
    let Some(etcd) = Etcd::start("encryption::reload::keys_change_without_a_restart") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("encryption.yaml");
    configure(&path, "  - identity: {}\n");
    let reloading = Reloading::start(&etcd, &path).await;
    let secrets = reloading.secrets();
    create_both(reloading.client.clone()).await;
    assert!(raw(&etcd).starts_with("k8s\0"), "{}", raw(&etcd));
    let checks = health(&reloading.client, "/readyz?verbose").await;
    let checks = checks.expect("ready");
    for check in [
        "[+]kms-providers ok",
        "[+]poststarthook/start-encryption-provider-config-automatic-reload ok",
    ] {
        assert!(checks.contains(check), "{checks}");
    }
    health(&reloading.client, "/livez/kms-providers")
        .await
        .expect_err("not a check of /livez");

    // An invalid file changes nothing.
    assert_eq!(reloading.metric(LAST_RELOAD, "failure").await, 0.0);
    let begun = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let begun = begun.expect("after 1970").as_secs_f64();
    fs::write(&path, "kind: Pod").expect("a file");
    reloading.until("failure", 1.0).await;
    assert!(reloading.metric(LAST_RELOAD, "failure").await >= begun);
    // The failure is counted before it is logged.
    let words = "error processing encryption config file";
    reloading.server.logged(words).await;
    secrets.get("s").await.expect("read as before");

    // What was plain is still read, and written anew with a key.
    let identity = "  - identity: {}\n";
    let one = secretbox(&[("one", "A")]);
    reloading.configure(&format!("{one}{identity}")).await;
    let read = secrets.get("s").await.expect("read");
    let rewritten = secrets.replace("s", &PostParams::default(), &read).await;
    rewritten.expect("written anew, though nothing changes");
    assert!(raw(&etcd).starts_with("k8s:enc:secretbox:v1:one:"));

    // A key that is gone is missed by the store, and not by the cache.
    reloading.configure(&secretbox(&[("two", "I")])).await;
    secrets.get("s").await.expect_err("from the store");
    let cached = ListParams::default().match_any();
    let list = secrets.list(&cached).await.expect("from the cache");
    assert_eq!(list.items.len(), 1);

    // What another server writes with an unknown key is readable once the key is known.
    let other = folder.path().join("other.yaml");
    configure(
        &other,
        &secretbox(&[("three", "Q"), ("two", "I"), ("one", "A")]),
    );
    let writer = Reloading::start(&etcd, &other).await;
    let created = writer
        .secrets()
        .create(&PostParams::default(), &secret("t"))
        .await;
    created.expect("created");
    let what = "no list that lacks what cannot be decrypted";
    let refused = eventually(DEADLINE, what, async || {
        secrets.list(&cached).await.is_err()
    });
    refused.await;
    let all = secretbox(&[("two", "I"), ("three", "Q"), ("one", "A")]);
    reloading.configure(&all).await;
    let listed = eventually(DEADLINE, "listed again", async || {
        secrets.list(&cached).await
    });
    assert_eq!(listed.await.items.len(), 2);
    migrate(&secrets).await;
    assert!(raw(&etcd).starts_with("k8s:enc:secretbox:v1:two:"));
}

/// Does to a secret what kube-controller-manager's storage-version-migrator does to each object of a type: it applies
/// nothing but the identity of the object.
async fn migrate(secrets: &Api<Secret>) {
    let read = secrets.get("s").await.expect("read");
    let patch = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "s", "namespace": "default", "uid": read.metadata.uid,
        "resourceVersion": read.metadata.resource_version}});
    let params = PatchParams::apply("storage-version-migrator-controller");
    let patched = secrets.patch("s", &params, &Patch::Apply(patch)).await;
    let patched = patched.expect("applied");
    assert_eq!(patched.data, read.data);
}

#[tokio::test]
async fn a_plugin_is_used_once_it_is_healthy() {
    let case = "encryption::reload::a_plugin_is_used_once_it_is_healthy";
    let Some(etcd) = Etcd::start(case) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (path, socket) = (
        folder.path().join("encryption.yaml"),
        folder.path().join("kms.sock"),
    );
    let identity = "  - identity: {}\n";
    configure(&path, identity);
    let reloading = Reloading::start(&etcd, &path).await;
    reloading.replace(&format!("{}{identity}", provider(&socket)));
    reloading.until("failure", 1.0).await;
    let words = "health check for new transformers failed";
    reloading.server.logged(words).await;
    create_both(reloading.client.clone()).await;
    assert!(raw(&etcd).starts_with("k8s\0"), "{}", raw(&etcd));
    let ok = health(&reloading.client, "/readyz/kms-providers").await;
    assert_eq!(ok.expect("no plugin is used"), "ok");

    let _plugin = Plugin::start(&socket);
    reloading.until("success", 1.0).await;
    let secrets = reloading.secrets();
    let read = secrets.get("s").await.expect("read");
    let rewritten = secrets.replace("s", &PostParams::default(), &read).await;
    rewritten.expect("written anew");
    assert!(raw(&etcd).starts_with("k8s:enc:kms:v2:plugin:"));
}

/// The metrics name the configuration that is used, also if it is not read again.
#[tokio::test]
async fn the_configuration_is_named_by_its_digest() {
    let Some(etcd) = Etcd::start("encryption::reload::the_configuration_is_named_by_its_digest")
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("encryption.yaml");
    configure(&path, "  - identity: {}\n");
    let (endpoint, config) = (etcd.endpoint(), path.display().to_string());
    let (_server, client) = Server::ready(&flags(&endpoint, &config)).await;
    let metrics = requests::text(&client, "/metrics").await;
    let start =
        "apiserver_encryption_config_controller_last_config_info{apiserver_id_hash=\"sha256:";
    let mut lines = metrics.lines();
    let line = lines.find(|line| line.starts_with(start)).expect("a line");
    let digest = line.split("hash=\"sha256:").nth(2).expect("a digest");
    assert_eq!(digest.len(), 64 + "\"} 1".len(), "{line}");
    assert!(!metrics.contains(RELOADS));
    let checks = health(&client, "/readyz?verbose").await.expect("ready");
    assert!(!checks.contains("kms-providers"), "{checks}");
}
