//! Keys of a KMS plugin, from a Secret in etcd to the plugin's death.

use std::path::Path;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::kms_plugin::Plugin;
use super::{configure, create_both, flags, raw};
use crate::support::etcd::Etcd;
use crate::support::named;
use crate::support::requests;
use crate::support::server::Server;

pub(super) fn provider(socket: &Path) -> String {
    let endpoint = format!("unix://{}", socket.display());
    format!("  - kms: {{apiVersion: v2, name: plugin, endpoint: \"{endpoint}\", timeout: 5s}}\n")
}

pub(super) async fn health(client: &Client, path: &str) -> Result<String, kube::Error> {
    client.request_text(requests::get(path)).await
}

pub(super) fn secret(name: &str) -> Secret {
    Secret {
        metadata: named(name),
        ..Secret::default()
    }
}

#[tokio::test]
async fn a_plugin_encrypts_and_its_death_leaves_nothing_plain() {
    let case = "encryption::kms::a_plugin_encrypts_and_its_death_leaves_nothing_plain";
    let Some(etcd) = Etcd::start(case) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("kms.sock");
    let path = folder.path().join("encryption.yaml");
    configure(&path, &provider(&socket));
    let plugin = Plugin::start(&socket);
    let (endpoint, config) = (etcd.endpoint(), path.display().to_string());
    let flags = flags(&endpoint, &config);
    let (mut server, client) = Server::ready(&flags).await;
    let created = create_both(client.clone()).await;
    assert!(
        raw(&etcd).starts_with("k8s:enc:kms:v2:plugin:"),
        "{}",
        raw(&etcd)
    );
    assert!(!raw(&etcd).contains("plain words"));
    assert_eq!(
        health(&client, "/readyz/kms-providers")
            .await
            .expect("healthy"),
        "ok"
    );
    let secrets: Api<Secret> = Api::default_namespaced(client);
    for name in ["one", "two"] {
        let created = secrets.create(&PostParams::default(), &secret(name)).await;
        created.expect("created");
    }
    assert_eq!(
        (plugin.calls("Encrypt"), plugin.calls("Decrypt")),
        (1, 0),
        "one seed for all"
    );
    server.stop().await;

    // Another process knows no seed: the plugin decrypts the one of the first, once.
    server.start_again();
    let client = server.client().await;
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let list = secrets.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 3);
    assert_eq!(secrets.get("s").await.expect("read").data, created.data);
    assert_eq!((plugin.calls("Encrypt"), plugin.calls("Decrypt")), (2, 1));
    server.stop().await;

    drop(plugin);
    server.start_again();
    dies(&etcd, &mut server, &socket, &created).await;
}

/// Checks a server that began without its plugin, and that it reads again once there is one.
async fn dies(etcd: &Etcd, server: &mut Server, socket: &Path, created: &Secret) {
    let client = server.client_once("/livez").await;
    let unhealthy = health(&client, "/readyz/kms-providers").await;
    unhealthy.expect_err("there is no plugin");
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let refused = secrets
        .create(&PostParams::default(), &secret("plain"))
        .await;
    let error = refused.expect_err("no key").to_string();
    assert!(error.contains("its plugin has not answered yet"), "{error}");
    let stored = etcd.etcdctl(&["get", "/registry/secrets/default/plain"]);
    assert!(stored.is_empty(), "{stored}");
    let error = secrets
        .get("s")
        .await
        .expect_err("its seed is not known")
        .to_string();
    assert!(error.contains("failed to decrypt DEK"), "{error}");

    let _plugin = Plugin::start(socket);
    // The failure is remembered for a moment.
    let read = eventually(DEADLINE, "the plugin is asked again", async || {
        secrets.get("s").await
    });
    assert_eq!(read.await.data, created.data);
}

/// Lists the secrets of the watch cache.
async fn cached_list(client: &Client) -> (u16, Value) {
    let path = "/api/v1/namespaces/default/secrets?resourceVersion=0";
    let answer = requests::send(client, requests::get(path)).await;
    requests::status_and_document(&answer)
}

/// Waits until the secrets of the watch cache can be listed, and returns the list.
async fn list_once_decrypted(client: &Client) -> Value {
    let listed = eventually(
        DEADLINE,
        "the type is listed again",
        async || match cached_list(client).await {
            (200, list) => Ok(list),
            other => Err(other),
        },
    );
    listed.await
}

/// While a plugin hangs, the types whose keys it has cannot be read, and all others are served as ever. Nothing is
/// lost.
#[tokio::test]
async fn a_plugin_that_hangs_holds_up_its_types_alone() {
    let case = "encryption::kms::a_plugin_that_hangs_holds_up_its_types_alone";
    let Some(etcd) = Etcd::start(case) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("kms.sock");
    let path = folder.path().join("encryption.yaml");
    // Calls take longer than anything here waits for.
    configure(&path, &provider(&socket).replace("5s", "1h"));
    let plugin = Plugin::start(&socket);
    let (endpoint, config) = (etcd.endpoint(), path.display().to_string());
    let flags = flags(&endpoint, &config);
    let (reader_server, _) = Server::ready(&flags).await;
    let mut config = reader_server.config().await;
    // What is refused is not asked again.
    config.default_retry = false;
    let reader = Client::try_from(config).expect("a client");
    let secrets: Api<Secret> = Api::default_namespaced(reader.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(reader.clone());
    let list = secrets.list(&ListParams::default()).await.expect("a list");
    let begin = list.metadata.resource_version.expect("a version");
    let watch = secrets.watch(&WatchParams::default(), &begin).await;
    let mut watch = watch.expect("a watch").boxed();
    let changes = maps.watch(&WatchParams::default(), &begin).await;
    let mut changes = changes.expect("a watch").boxed();

    let (_writer_server, writer) = Server::ready(&flags).await;
    plugin.hang(true);
    let decrypted = plugin.calls("Decrypt");
    let created = create_both(writer.clone()).await;
    let seen = tokio::time::timeout(DEADLINE, changes.next()).await;
    let seen = seen.expect("no wait").expect("an event");
    assert!(matches!(seen, Ok(WatchEvent::Added(it)) if it.name_any() == "m"));
    let asked = eventually(DEADLINE, "the plugin is asked", async || {
        plugin.calls("Decrypt") > decrypted
    });
    asked.await;
    let found = maps.list(&ListParams::default()).await.expect("a list");
    assert!(found.items.iter().any(|it| it.name_any() == "m"));
    let (status, body) = cached_list(&reader).await;
    assert_eq!((status, &body["reason"]), (429, &json!("TooManyRequests")));
    let message = body["message"].as_str().unwrap_or_default();
    let cause = "the value of /secrets/default/s cannot be decrypted yet";
    assert!(message.contains(cause), "{message}");
    let filled = health(&reader, "/readyz/informer-sync").await;
    assert_eq!(
        filled.expect("one type takes no server out of service"),
        "ok"
    );

    // The watch ends, since the value does not become readable in time.
    let ended = tokio::time::timeout(DEADLINE, watch.next()).await;
    assert!(ended.expect("in time").is_none());
    plugin.hang(false);
    let again = list_once_decrypted(&reader).await;
    let items = again["items"].as_array().map(Vec::len);
    assert_eq!(items, Some(1));
    let data = serde_json::to_value(created.data).expect("JSON");
    assert_eq!(again["items"][0]["data"], data);
    let version = again["metadata"]["resourceVersion"].as_str();
    let version = version.expect("a version").to_owned();
    goes_on(&secrets, &version, writer).await;
}

/// Checks that a watch sees what another server writes.
async fn goes_on(secrets: &Api<Secret>, version: &str, writer: Client) {
    let watch = secrets.watch(&WatchParams::default(), version).await;
    let mut watch = watch.expect("a watch").boxed();
    let others: Api<Secret> = Api::default_namespaced(writer);
    let created = others.create(&PostParams::default(), &secret("t")).await;
    created.expect("created");
    let seen = tokio::time::timeout(DEADLINE, watch.next()).await;
    let seen = seen.expect("no wait").expect("an event");
    assert!(matches!(seen, Ok(WatchEvent::Added(it)) if it.name_any() == "t"));
}
