//! Admission: webhooks that the tests serve, and policies.

mod conversion;
mod converted_selection;
mod hostile;
mod managed_fields;
mod mutating;
mod mutating_policies;
mod numbers;
mod pod_security;
mod policies;
mod validating;
mod written;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::webhook::{Reply, Webhook};

/// The longest time that a webhook may be given, so that a busy machine exceeds it in no test.
const TIMEOUT_SECONDS: u32 = 30;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An answer: its status, its document, and its warnings.
type Answered = (u16, Value, Vec<String>);

async fn ask(client: &Client, method: Method, path: &str, body: &Value) -> Answered {
    answered(client, requests::request(method, path, body)).await
}

async fn ask_as(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
    media_type: &str,
) -> Answered {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type);
    answered(client, requests::with_document(request, body)).await
}

async fn answered(client: &Client, request: Request<Body>) -> Answered {
    let answer = requests::send(client, request).await;
    let warnings = answer.headers().get_all("warning").into_iter();
    let warnings = warnings.map(|it| it.to_str().expect("text").to_owned());
    let (status, document) = requests::status_and_document(&answer);
    (status, document, warnings.collect())
}

fn message(answered: &Answered) -> String {
    let text = answered.1["message"].as_str().unwrap_or_default();
    format!("{} {text}", answered.0)
}

/// Creates a configuration of the plural with these hooks, and waits until the first has been asked
/// at `path` about a ConfigMap with this label.
async fn configure(client: &Client, webhook: &Webhook, plural: &str, hooks: Vec<Value>) {
    let kind = match plural {
        "mutatingwebhookconfigurations" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    let mut hooks = hooks;
    hooks.push(hook(webhook, "ready", json!({})));
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "tests"}, "webhooks": hooks});
    let created = ask(
        client,
        Method::POST,
        &format!("{GROUP}/{plural}"),
        &configuration,
    )
    .await;
    assert_eq!(created.0, 201, "{}", message(&created));
    eventually(DEADLINE, "the configuration is followed", async || {
        let made = create(client, &config_map("ready", "ready"), "?dryRun=All").await;
        assert_eq!(made.0, 201, "{}", message(&made));
        !webhook.take("/ready").is_empty()
    })
    .await;
}

/// A hook for ConfigMaps that are labelled with its name, answered under that path.
fn hook(webhook: &Webhook, name: &str, more: Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": webhook.client_config(&format!("/{name}")),
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
            "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"case": name}},
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": TIMEOUT_SECONDS,
    });
    for (member, value) in more.as_object().expect("members") {
        hook[member] = value.clone();
    }
    hook
}

fn config_map(name: &str, case: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"case": case}}, "data": {"k": "v"}})
}

async fn create(client: &Client, object: &Value, query: &str) -> Answered {
    let path = format!("{CONFIG_MAPS}{query}");
    ask(client, Method::POST, &path, object).await
}

/// A review that agrees, with these members in its response.
fn agreed(review: &Value, more: Value) -> Reply {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    for (member, value) in more.as_object().expect("members") {
        response[member] = value.clone();
    }
    Reply::Json(
        json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
        "response": response}),
    )
}
