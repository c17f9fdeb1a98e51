//! Selectors of custom resources that a webhook converts: they look at objects as they are served.
//!
//! Stored objects have one text, `hostPort`; those of v2 have `host`, `port`, and a label that the webhook sets.

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Method;
use kube::Client;
use kube::api::{Api, DynamicObject, WatchParams};
use kube::core::{ApiResource, GroupVersionKind, WatchEvent};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::conversion::start_with;
use super::{ask, message};
use crate::support::webhook::{Reply, Webhook};

const V1: &str = "/apis/example.com/v1/namespaces/default/gates";
const V2: &str = "/apis/example.com/v2/namespaces/default/gates";

fn converted(object: &Value, version: &str) -> Value {
    let mut converted =
        json!({"apiVersion": version, "kind": "Gate", "metadata": object["metadata"]});
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    if version == "example.com/v1" {
        converted["hostPort"] = json!(format!("{}:{}", text("host"), text("port")));
        converted["metadata"]["labels"] = Value::Null;
    } else {
        let (host, port) = text("hostPort").split_once(':').unwrap_or_default();
        converted["host"] = json!(host);
        converted["port"] = json!(port);
        converted["metadata"]["labels"] = json!({"on": host});
    }
    converted
}

fn answer(_: &str, review: &Value) -> Reply {
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let objects: Vec<_> = objects.iter().map(|it| converted(it, version)).collect();
    Reply::Json(
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"},
            "convertedObjects": objects}}),
    )
}

async fn start(webhook: &Webhook, flags: &[&str]) -> (crate::support::server::Server, Client) {
    let version = |name: &str, storage: bool, fields: &[&str]| {
        let properties = fields
            .iter()
            .map(|it| ((*it).to_owned(), json!({"type": "string"})));
        let properties: serde_json::Map<_, _> = properties.collect();
        let selectable = fields
            .iter()
            .map(|it| json!({"jsonPath": format!(".{it}")}));
        json!({"name": name, "served": true, "storage": storage,
            "selectableFields": selectable.collect::<Value>(),
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "gates.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gates", "kind": "Gate"},
            "versions": [version("v1", true, &["hostPort"]), version("v2", false, &["host", "port"])],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": webhook.client_config("/convert")}}}});
    start_with(flags, &definition, V1).await
}

async fn create(client: &Client, name: &str, host: &str, port: &str) {
    let gate = json!({"apiVersion": "example.com/v2", "kind": "Gate",
        "metadata": {"name": name}, "host": host, "port": port});
    let created = ask(client, Method::POST, V2, &gate).await;
    assert_eq!(created.0, 201, "{}", message(&created));
}

/// Returns the names in a list, and its continue token.
async fn list(client: &Client, path: &str, query: &str) -> (String, String) {
    let listed = ask(
        client,
        Method::GET,
        &format!("{path}?{query}"),
        &Value::Null,
    )
    .await;
    assert_eq!(listed.0, 200, "{}", message(&listed));
    let items = listed.1["items"].as_array().expect("items").iter();
    let names: Vec<_> = items
        .map(|it| it["metadata"]["name"].as_str().expect("a name"))
        .collect();
    let token = &listed.1["metadata"]["continue"];
    (
        names.join(" "),
        token.as_str().unwrap_or_default().to_owned(),
    )
}

type Watch = BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>;

async fn watch(client: &Client, version: &str, params: WatchParams, from: &str) -> Watch {
    let kind = GroupVersionKind::gvk("example.com", version, "Gate");
    let kind = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    let watch = api.watch(&params, from).await.expect("a watch");
    watch.boxed()
}

/// Returns the next events of a watch, such as `+a ~a -a`.
async fn next(watch: &mut Watch, count: usize) -> String {
    let reading = async {
        let mut seen = Vec::new();
        while seen.len() < count {
            let event = watch.next().await.expect("an event").expect("no error");
            seen.push(match event {
                WatchEvent::Added(object) => format!("+{}", object.metadata.name.expect("a name")),
                WatchEvent::Modified(object) => {
                    format!("~{}", object.metadata.name.expect("a name"))
                }
                WatchEvent::Deleted(object) => {
                    format!("-{}", object.metadata.name.expect("a name"))
                }
                other => panic!("{other:?}"),
            });
        }
        seen.join(" ")
    };
    tokio::time::timeout(DEADLINE, reading)
        .await
        .expect("in time")
}

fn fields(selector: &str) -> WatchParams {
    WatchParams::default().fields(selector)
}

async fn lists_and_watches_select(flags: &[&str]) {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = start(&webhook, flags).await;
    let listed = ask(&client, Method::GET, V2, &Value::Null).await;
    let from = listed.1["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let mut host = watch(&client, "v2", fields("host=host1"), from).await;
    let mut both = watch(&client, "v2", fields("host=host1,port=80"), from).await;
    let mut stored = watch(&client, "v1", fields("hostPort=host1:80"), from).await;
    let labels = WatchParams::default().labels("on=host1");
    let mut labelled = watch(&client, "v2", labels, from).await;

    create(&client, "a", "host1", "80").await;
    create(&client, "b", "host1", "8080").await;
    create(&client, "c", "host2", "").await;
    for (path, query, names) in [
        (V2, "fieldSelector=host%3Dhost1", "a b"),
        (V2, "fieldSelector=host%3Dhost1,port%3D80", "a"),
        (V2, "fieldSelector=host!%3Dhost1", "c"),
        (V2, "fieldSelector=host%3Dhost1,metadata.name%3Db", "b"),
        (V2, "labelSelector=on%3Dhost1", "a b"),
        (V1, "labelSelector=on%3Dhost1", ""),
        (V1, "fieldSelector=hostPort%3Dhost1:8080", "b"),
    ] {
        assert_eq!(list(&client, path, query).await.0, names, "{path}?{query}");
    }
    let cached = "fieldSelector=hostPort%3Dhost1:8080&resourceVersion=0";
    eventually(DEADLINE, "the cache has b", async || {
        let (names, _) = list(&client, V1, cached).await;
        if names == "b" { Ok(()) } else { Err(names) }
    })
    .await;
    let foreign = format!("{V1}?fieldSelector=host%3Dhost1");
    let refused = ask(&client, Method::GET, &foreign, &Value::Null).await;
    assert_eq!(refused.0, 400, "{}", message(&refused));

    let path = format!("{V2}?fieldSelector=host%3Dhost1,port%3D80");
    let deleted = ask(&client, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(deleted.0, 200, "{}", message(&deleted));
    for host in ["host2", "host1"] {
        let path = format!("{V2}/b");
        let patched = ask(&client, Method::PATCH, &path, &json!({"host": host})).await;
        assert_eq!(patched.0, 200, "{}", message(&patched));
    }
    let path = format!("{V2}/b");
    let patched = ask(&client, Method::PATCH, &path, &json!({"port": "80"})).await;
    assert_eq!(patched.0, 200, "{}", message(&patched));

    assert_eq!(next(&mut host, 6).await, "+a +b -a -b +b ~b");
    assert_eq!(next(&mut both, 3).await, "+a -a +b");
    assert_eq!(next(&mut stored, 3).await, "+a -a +b");
    assert_eq!(next(&mut labelled, 6).await, "+a +b -a -b +b ~b");
    let mut state = watch(&client, "v2", fields("host=host2"), "0").await;
    assert_eq!(next(&mut state, 1).await, "+c");
}

#[tokio::test]
async fn lists_and_watches_select_what_is_served() {
    lists_and_watches_select(&[]).await;
}

#[tokio::test]
async fn lists_and_watches_of_the_store_select_what_is_served() {
    lists_and_watches_select(&["--watch-cache=false"]).await;
}

#[tokio::test]
async fn pages_have_what_is_selected_once() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = start(&webhook, &[]).await;
    let mut expected = Vec::new();
    for number in 0..40 {
        let name = format!("g{number:02}");
        let host = if [3, 4, 11, 12, 13, 39].contains(&number) {
            "rare"
        } else {
            "common"
        };
        create(&client, &name, host, "1").await;
        if host == "rare" {
            expected.push(name);
        }
    }
    for limit in 1..=7 {
        for path in [V2, "/apis/example.com/v2/gates"] {
            let (mut names, mut token) = (Vec::new(), String::new());
            loop {
                let query = format!("fieldSelector=host%3Drare&limit={limit}&continue={token}");
                let page = list(&client, path, &query).await;
                let page_names = page.0.split_whitespace().map(str::to_owned);
                let before = names.len();
                names.extend(page_names);
                assert!(names.len() - before <= limit, "{names:?}");
                token = page.1;
                if token.is_empty() {
                    break;
                }
                assert!(names.len() > before, "a page is empty only at the end");
            }
            assert_eq!(names, expected, "{limit} {path}");
        }
    }
}
