//! Encryption at rest, end to end: what lies in etcd, and what becomes of it when keys change.

mod kms;
mod kms_plugin;
mod reload;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use futures::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};

use crate::support::etcd::Etcd;
use crate::support::named;
use crate::support::server::Server;

const KEY: &str = "/registry/secrets/default/s";

/// A key of 32 equal bytes, in base64.
fn key(name: &str, letter: &str) -> String {
    let secret = format!("{}=", letter.repeat(43));
    format!("{{name: {name}, secret: \"{secret}\"}}")
}

/// Returns the flags of a server over etcd that has a configuration of encryption.
fn flags<'a>(endpoint: &'a str, config: &'a str) -> [&'a str; 4] {
    [
        "--etcd-servers",
        endpoint,
        "--encryption-provider-config",
        config,
    ]
}

fn configure(path: &Path, providers: &str) {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers:\n{providers}"
    );
    fs::write(path, text).expect("a file");
}

/// Returns etcd's value of the secret: its printable part.
fn raw(etcd: &Etcd) -> String {
    etcd.etcdctl(&["get", KEY, "--print-value-only"])
}

/// Creates a secret, which is returned, and something that is none.
async fn create_both(client: Client) -> Secret {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let data = BTreeMap::from([("k".to_owned(), ByteString(b"plain words".to_vec()))]);
    let secret = Secret {
        metadata: named("s"),
        data: Some(data),
        ..Secret::default()
    };
    let created = secrets.create(&PostParams::default(), &secret).await;
    let map = ConfigMap {
        metadata: named("m"),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map)
        .await
        .expect("created");
    created.expect("created")
}

#[tokio::test]
async fn keys_rotate_and_a_wrong_one_is_an_error() {
    let Some(etcd) = Etcd::start("encryption::keys_rotate_and_a_wrong_one_is_an_error") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("encryption.yaml");
    let one = format!("  - aesgcm: {{keys: [{}]}}\n", key("one", "A"));
    let two = format!("  - secretbox: {{keys: [{}]}}\n", key("two", "I"));
    configure(&path, &format!("{one}  - identity: {{}}\n"));
    let endpoint = etcd.endpoint();
    let config = path.display().to_string();
    let (mut server, client) = Server::ready(&flags(&endpoint, &config)).await;
    let created = create_both(client).await;
    assert!(raw(&etcd).starts_with("k8s:enc:aesgcm:v1:one:"));
    assert!(!raw(&etcd).contains("plain words"));
    let map = etcd.etcdctl(&[
        "get",
        "/registry/configmaps/default/m",
        "--print-value-only",
    ]);
    assert!(map.starts_with("k8s\0"), "{map:?}");
    server.stop().await;

    // The new key comes first, the old one still reads.
    configure(&path, &format!("{two}{one}"));
    server.start_again();
    let client = server.client().await;
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let list = secrets.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].data, created.data);
    let read = secrets.get("s").await.expect("read");
    let rewritten = secrets.replace("s", &PostParams::default(), &read).await;
    let rewritten = rewritten.expect("written anew, though nothing changes");
    assert!(raw(&etcd).starts_with("k8s:enc:secretbox:v1:two:"));
    let again = secrets
        .replace("s", &PostParams::default(), &rewritten)
        .await;
    assert_eq!(
        again.expect("nothing to write").metadata.resource_version,
        rewritten.metadata.resource_version
    );
    server.stop().await;

    // Another key of the same name.
    configure(&path, &two.replace("III", "QQQ"));
    server.start_again();
    let client = server.client().await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let refused = secrets.list(&ListParams::default()).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("a list without what cannot be decrypted");
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "StorageReadError")
    );
    secrets.get("s").await.expect_err("it cannot be decrypted");
    no_state_is_told(&secrets).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.get("m").await.expect("another type");
}

/// A watch that begins with the state fails, instead of leaving out what cannot be decrypted.
async fn no_state_is_told(secrets: &Api<Secret>) {
    let watch = secrets.watch(&WatchParams::default(), "0").await;
    let mut events = watch.expect("a watch").boxed();
    let first = events.next().await.expect("an event").expect("of a watch");
    let WatchEvent::Error(status) = first else {
        panic!("a state without what cannot be decrypted: {first:?}");
    };
    assert_eq!(status.code, 500);
}

#[tokio::test]
async fn plain_values_of_an_encrypted_type_are_not_served() {
    let Some(etcd) = Etcd::start("encryption::plain_values_of_an_encrypted_type_are_not_served")
    else {
        return;
    };
    let planted = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"planted","namespace":"default","uid":"u"}}"#;
    etcd.etcdctl(&["put", "/registry/secrets/default/planted", planted]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("encryption.yaml");
    configure(
        &path,
        &format!("  - aesgcm: {{keys: [{}]}}\n", key("one", "A")),
    );
    let config = path.display().to_string();
    let endpoint = etcd.endpoint();
    let mut server = Server::start(&flags(&endpoint, &config));
    let secrets: Api<Secret> = Api::default_namespaced(server.client().await);
    secrets.get("planted").await.expect_err("from the store");
    for params in [ListParams::default(), ListParams::default().match_any()] {
        secrets.list(&params).await.expect_err("from the cache");
    }
}
