//! A custom resource of two versions whose content differs, converted by a webhook.

use std::process::Command;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Method;
use kube::Client;
use kube::api::{Api, DynamicObject, WatchParams};
use kube::core::{ApiResource, GroupVersionKind, WatchEvent};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{ask, message};
use crate::support::server::Server;
use crate::support::tools::{self, skipped};
use crate::support::webhook::{Reply, Webhook};

const V1: &str = "/apis/example.com/v1/namespaces/default/widgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// The size is one text in v1, and two numbers in v2.
fn converted(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    if object["apiVersion"] == version {
        return object;
    }
    object["spec"] = if version == "example.com/v1" {
        let spec = &object["spec"];
        json!({"size": format!("{}x{}", spec["width"], spec["height"])})
    } else {
        let size = object["spec"]["size"].as_str().unwrap_or_default();
        let (width, height) = size.split_once('x').unwrap_or(("0", "0"));
        let number = |text: &str| text.parse::<i64>().unwrap_or_default();
        json!({"width": number(width), "height": number(height)})
    };
    object["apiVersion"] = json!(version);
    object["metadata"]["annotations"] = json!({"converted-to": version});
    object["metadata"]["generation"] = json!(77);
    object
}

fn answer(_: &str, review: &Value) -> Reply {
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let named = |name: &str| objects.iter().any(|it| it["metadata"]["name"] == name);
    let mut result: Vec<Value> = objects.iter().map(|it| converted(it, version)).collect();
    let mut response = json!({"uid": request["uid"], "result": {"status": "Success"}});
    if named("refused") {
        response["result"] = json!({"status": "Failure", "message": "no such size"});
    }
    if named("renamed") {
        result[0]["metadata"]["name"] = json!("other");
    }
    if named("lost") {
        result.clear();
    }
    if named("other-uid") {
        response["uid"] = json!("x");
    }
    response["convertedObjects"] = result.into();
    Reply::Json(
        json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": response}),
    )
}

fn definition(webhook: &Webhook) -> Value {
    let version = |name: &str, storage: bool, spec: Value| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec}}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                version("v1", false, json!({"size": {"type": "string"}})),
                version("v2", true, json!({"width": {"type": "integer"},
                    "height": {"type": "integer"}, "depth": {"type": "integer", "default": 1}})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": webhook.client_config("//convert/")}}}})
}

fn widget(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": name}, "spec": spec})
}

async fn start(webhook: &Webhook) -> (Server, Client) {
    start_with(&[], &definition(webhook), V1).await
}

/// A server with a definition, once it is served at a path.
pub(super) async fn start_with(flags: &[&str], definition: &Value, path: &str) -> (Server, Client) {
    let (server, client) = Server::ready(&[&["--storage-backend=memory"], flags].concat()).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = ask(&client, Method::POST, definitions, definition).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    eventually(DEADLINE, "it is served", async || {
        ask(&client, Method::GET, path, &Value::Null).await.0 == 200
    })
    .await;
    (server, client)
}

#[tokio::test]
async fn both_versions_show_the_same_objects() {
    let webhook = Webhook::start(answer).await;
    let (server, client) = start(&webhook).await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let first = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &first);
    let watch = api.watch(&WatchParams::default(), "0").await;
    let mut watch = watch.expect("a watch").boxed();

    let size = widget("v1", "a", json!({"size": "10x20"}));
    let created = ask(&client, Method::POST, V1, &size).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    assert_eq!(created.1["spec"], json!({"size": "10x20"}));
    assert_eq!(created.1["metadata"]["generation"], 1);
    let second = ask(&client, Method::GET, &format!("{V2}/a"), &Value::Null).await;
    let spec = json!({"width": 10, "height": 20, "depth": 1});
    assert_eq!(second.1["spec"], spec, "{}", message(&second));
    assert_eq!(second.1["apiVersion"], "example.com/v2");
    assert_eq!(second.1["metadata"]["uid"], created.1["metadata"]["uid"]);

    webhook.take("/convert");
    let wider = json!({"spec": {"width": 30}});
    let patched = ask(&client, Method::PATCH, &format!("{V2}/a"), &wider).await;
    assert_eq!(patched.1["spec"]["width"], 30, "{}", message(&patched));
    let b = widget("v2", "b", json!({"width": 1, "height": 2}));
    let created = ask(&client, Method::POST, V2, &b).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    let list = ask(&client, Method::GET, V2, &Value::Null).await;
    assert_eq!(list.1["items"][1]["spec"]["width"], 1);
    for review in webhook.take("/convert") {
        let version = &review["request"]["desiredAPIVersion"];
        assert_eq!(version, "example.com/v1", "only the watch of v1 converts");
    }

    let list = ask(&client, Method::GET, V1, &Value::Null).await;
    let sizes = ["30x20", "1x2"].map(|size| json!({"size": size}));
    for (item, size) in list.1["items"]
        .as_array()
        .expect("items")
        .iter()
        .zip(&sizes)
    {
        assert_eq!(item["spec"], *size);
    }
    let mut put = list.1["items"][0].clone();
    put["spec"]["size"] = json!("5x6");
    let updated = ask(&client, Method::PUT, &format!("{V1}/a"), &put).await;
    assert_eq!(updated.1["spec"]["size"], "5x6", "{}", message(&updated));
    let deleted = ask(&client, Method::DELETE, &format!("{V1}/b"), &Value::Null).await;
    assert_eq!(deleted.0, 200, "{}", message(&deleted));

    assert_eq!(
        seen(&mut watch).await,
        [
            "added 10x20",
            "modified 30x20",
            "added 1x2",
            "modified 5x6",
            "deleted 1x2"
        ]
    );
    kubectl_gets_both(&server).await;
}

/// Returns the events of five changes.
async fn seen(watch: &mut BoxStream<'_, kube::Result<WatchEvent<DynamicObject>>>) -> Vec<String> {
    let events = tokio::time::timeout(DEADLINE, async {
        let mut seen = Vec::new();
        while seen.len() < 5 {
            let event = watch.next().await.expect("an event").expect("an event");
            let (what, object) = match event {
                WatchEvent::Added(object) => ("added", object),
                WatchEvent::Modified(object) => ("modified", object),
                WatchEvent::Deleted(object) => ("deleted", object),
                _ => continue,
            };
            let size = object.data["spec"]["size"].as_str().unwrap_or_default();
            seen.push(format!("{what} {size}"));
        }
        seen
    });
    events.await.expect("in time")
}

/// Waits beside the webhook, which answers from this thread.
async fn kubectl_gets_both(server: &Server) {
    let Some(kubectl) = tools::kubectl(33) else {
        return skipped("conversion with kubectl", "there is no kubectl 1.33");
    };
    for (version, path, value) in [("v1", "{.spec.size}", "5x6"), ("v2", "{.spec.height}", "6")] {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(server.kubeconfig());
        command.args(["get", &format!("widgets.{version}.example.com"), "a"]);
        command.arg(format!("-o=jsonpath={path}"));
        let output = tokio::task::spawn_blocking(move || tools::run(&mut command)).await;
        let output = output.expect("kubectl's end");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, value, "{output:?}");
    }
}

/// Objects that are deleted with their definition need not be converted.
#[tokio::test]
async fn a_definition_goes_though_its_webhook_is_gone() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = start(&webhook).await;
    let object = widget("v2", "left", json!({"width": 1}));
    let created = ask(&client, Method::POST, V2, &object).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    drop(webhook);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let deleted = ask(&client, Method::DELETE, path, &Value::Null).await;
    assert_eq!(deleted.0, 200, "{}", message(&deleted));
    eventually(DEADLINE, "it goes", async || {
        ask(&client, Method::GET, path, &Value::Null).await.0 == 404
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_converted_fails_by_itself() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = start(&webhook).await;
    for (name, why) in [
        ("refused", "failed: no such size"),
        (
            "renamed",
            "returned invalid object: must have the same name: renamed != other",
        ),
        ("lost", "returned 0 objects, expected 1"),
        ("other-uid", "failed: expected response.uid="),
    ] {
        let object = widget("v2", name, json!({"width": 1}));
        let created = ask(&client, Method::POST, V2, &object).await;
        assert_eq!(created.0, 201, "{}", message(&created));
        let expected = format!(
            "500 Internal error occurred: conversion webhook for example.com/v2, Kind=Widget {why}"
        );
        for path in [format!("{V1}/{name}"), V1.to_owned()] {
            let answered = ask(&client, Method::GET, &path, &Value::Null).await;
            let text = message(&answered);
            assert!(text.starts_with(&expected), "{name}: {text}");
        }
        let written = ask(&client, Method::POST, V1, &widget("v1", name, json!({}))).await;
        assert_eq!(written.0, 500, "{}", message(&written));
        let path = format!("{V2}/{name}");
        let deleted = ask(&client, Method::DELETE, &path, &Value::Null).await;
        assert_eq!(deleted.0, 200, "{}", message(&deleted));
    }
}
