//! Keys of a KMS plugin, from a Secret in etcd to the plugin's death.

use std::path::Path;

use http::Request;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use super::kms_plugin::Plugin;
use super::{configure, create_both, raw};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

fn provider(socket: &Path) -> String {
    let endpoint = format!("unix://{}", socket.display());
    format!("  - kms: {{apiVersion: v2, name: plugin, endpoint: \"{endpoint}\", timeout: 5s}}\n")
}

async fn health(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).body(Vec::new());
    client.request_text(request.expect("a request")).await
}

fn secret(name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
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
    let flags = [
        "--etcd-servers",
        &endpoint,
        "--encryption-provider-config",
        &config,
    ];
    let mut server = Server::start(&flags);
    let client = server.client().await;
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
    let read = secrets.get("s").await.expect("the plugin is asked again");
    assert_eq!(read.data, created.data);
}
