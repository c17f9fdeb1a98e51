//! Custom resources are counted like built-in ones: for `/metrics`, and for the seats that their lists take.

use std::fs;
use std::time::Duration;

use http::{Response, StatusCode};
use kube::Client;
use kube::client::Body;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;

/// Half of the minute between two counts.
const COUNTED_MAX: Duration = Duration::from_secs(30);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BLOBS: &str = "/apis/example.com/v1/namespaces/default/blobs";
/// Together more than all buffers on the way to a client that does not read.
const BLOB_COUNT: usize = 40;
const BLOB_BYTES: usize = 500_000;

/// The names of the metrics, each with its labels.
const STORED: &str = r#"apiserver_storage_objects{resource="blobs.example.com"}"#;
const OBJECTS: &str = r#"apiserver_resource_objects{group="example.com",resource="blobs"}"#;
const BYTES: &str =
    r#"apiserver_resource_size_estimate_bytes{group="example.com",resource="blobs"}"#;
const SEATS: &str = r#"apiserver_flowcontrol_current_executing_seats{flow_schema="global-default",priority_level="global-default"}"#;
/// A list takes no more seats.
const SEATS_MAX: u64 = 10;

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "blobs.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "blobs", "kind": "Blob"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "data": {"type": "string"}}}}}],
        },
    })
}

/// The answer, of which nothing but the head has been read.
async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Response<Body> {
    let answer = client.send(requests::request(method, path, body)).await;
    answer.expect("an answer")
}

/// The value of a metric, if it is shown.
async fn metric(client: &Client, name: &str) -> Option<u64> {
    let text = requests::text(client, "/metrics").await;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().parse().expect("a number"))
}

async fn until_it_is(client: &Client, name: &str, wanted: Option<u64>) {
    let what = format!("{name} is {wanted:?}");
    eventually(COUNTED_MAX, what, async || {
        let found = metric(client, name).await;
        (found == wanted).then_some(()).ok_or(found)
    })
    .await;
}

/// A type is watched, and so counted, before its objects can be asked for.
async fn until_served(client: &Client, path: &str) {
    eventually(DEADLINE, format!("{path} is served"), async || {
        send(client, "GET", path, &Value::Null).await.status() == StatusCode::OK
    })
    .await;
}

#[tokio::test]
async fn custom_resources_are_counted_while_they_are_defined() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens.csv");
    fs::write(&tokens, "jane-token,jane,1\n").expect("tokens");
    let tokens = tokens.display().to_string();
    let (mut server, admin) = Server::ready(&[
        "--token-auth-file",
        &tokens,
        "--authorization-mode=AlwaysAllow",
    ])
    .await;
    let defined = send(&admin, "POST", DEFINITIONS, &definition()).await;
    assert_eq!(defined.status(), StatusCode::CREATED);
    until_it_is(&admin, STORED, Some(0)).await;
    until_served(&admin, BLOBS).await;
    for number in 0..BLOB_COUNT {
        let blob = json!({"apiVersion": "example.com/v1", "kind": "Blob",
            "metadata": {"name": format!("b{number}")}, "data": "x".repeat(BLOB_BYTES)});
        let created = send(&admin, "POST", BLOBS, &blob).await;
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    // It counts when it starts, so nobody has to wait for a minute.
    let admin = server.restart().await;
    until_it_is(&admin, STORED, Some(BLOB_COUNT as u64)).await;
    until_it_is(&admin, OBJECTS, Some(BLOB_COUNT as u64)).await;
    let bytes = eventually(COUNTED_MAX, "a size", async || metric(&admin, BYTES).await).await;
    assert!(bytes > (BLOB_COUNT * BLOB_BYTES) as u64, "{bytes}");
    until_served(&admin, BLOBS).await;
    let jane = server.client_with_token("jane-token").await;
    let unread = send(&jane, "GET", BLOBS, &Value::Null).await;
    assert_eq!(unread.status(), StatusCode::OK);
    until_it_is(&admin, SEATS, Some(SEATS_MAX)).await;
    drop(unread);
    until_it_is(&admin, SEATS, Some(0)).await;
    let path = format!("{DEFINITIONS}/blobs.example.com");
    let deleted = send(&admin, "DELETE", &path, &Value::Null).await;
    assert_eq!(deleted.status(), StatusCode::OK);
    for name in [STORED, OBJECTS, BYTES] {
        until_it_is(&admin, name, None).await;
    }
}
