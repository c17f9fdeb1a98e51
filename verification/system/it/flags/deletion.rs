//! Flags of deletions.

use http::{Method, Request};
use ringwatch_server::InProcessServer;
use serde_json::{Value, json};

use super::Folder;
use crate::support::requests;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn call(server: &InProcessServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let answer = server.answer(requests::request(method, path, &body)).await;
    requests::status_and_document(&requests::whole(answer).await)
}

async fn create(server: &InProcessServer, name: &str) {
    let object = json!({"metadata": {"name": name, "labels": {"app": "x"}}});
    let (status, answer) = call(server, Method::POST, CONFIG_MAPS, object).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn without_the_garbage_collector_dependents_are_ignored() {
    let folder = Folder::new();
    for (flag, held) in [
        ("--enable-garbage-collector=false", false),
        ("--enable-garbage-collector=true", true),
    ] {
        let server = folder.serve(&[flag]).await;
        for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
            create(&server, "a").await;
            let path = format!("{CONFIG_MAPS}/a");
            let options = json!({"propagationPolicy": policy});
            let (status, answer) = call(&server, Method::DELETE, &path, options).await;
            assert_eq!(status, 200, "{answer}");
            let (status, answer) = call(&server, Method::GET, &path, Value::Null).await;
            assert_eq!(
                status,
                if held { 200 } else { 404 },
                "{flag} {policy}: {answer}"
            );
            if held {
                assert_eq!(answer["metadata"]["finalizers"], json!([finalizer]));
                let patch = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
                let request =
                    Request::patch(&path).header("content-type", "application/json-patch+json");
                let answer = server
                    .answer(requests::with_document(request, &patch))
                    .await;
                assert_eq!(answer.status(), 200);
            }
        }
    }
}

#[tokio::test]
async fn collections_are_deleted_by_several_workers() {
    let folder = Folder::new();
    let server = folder.serve(&["--delete-collection-workers=5"]).await;
    for number in 0..30 {
        create(&server, &format!("n{number}")).await;
    }
    let path = format!("{CONFIG_MAPS}?labelSelector=app%3Dx");
    let (status, answer) = call(&server, Method::DELETE, &path, json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["items"].as_array().map(Vec::len), Some(30));
    let (_, left) = call(&server, Method::GET, &path, Value::Null).await;
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn the_endpoints_of_the_api_are_left_alone() {
    let folder = Folder::new();
    let path = "/api/v1/namespaces/default/endpoints/kubernetes";
    for (flag, status) in [
        ("--endpoint-reconciler-type=none", 404),
        ("--endpoint-reconciler-type=lease", 200),
    ] {
        let server = folder.serve(&[flag, "--advertise-address=192.0.2.7"]).await;
        let answer = call(&server, Method::GET, path, Value::Null).await;
        assert_eq!(answer.0, status, "{flag}: {answer:?}");
    }
}
