//! The forms in which policies and webhooks see the numbers of custom resources, and what is kept of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::{GROUP, agreed, ask, configure, hook, message};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const CUSTOM_GROUP: &str = "numbers.example.com";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn made(client: &Client, path: &str, object: Value) {
    let created = ask(client, Method::POST, path, &object).await;
    assert_eq!(created.0, 201, "{}", message(&created));
}

fn answer(path: &str, review: &Value) -> Reply {
    let patch = match path {
        "/label" => json!([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]),
        "/float" => json!([{"op": "add", "path": "/spec/ruled", "value": 5.0}]),
        _ => return agreed(review, json!({})),
    };
    let patch = STANDARD.encode(patch.to_string());
    agreed(review, json!({"patchType": "JSONPatch", "patch": patch}))
}

/// Tries to create a number that is labelled with a case; returns the whole answer.
async fn create(client: &Client, case: &str, spec: Value) -> (u16, Value, Vec<String>) {
    let object = json!({"apiVersion": format!("{CUSTOM_GROUP}/v1"), "kind": "Number",
        "metadata": {"name": "a", "labels": {"case": case}}, "spec": spec});
    let path = format!("/apis/{CUSTOM_GROUP}/v1/numbers?dryRun=All");
    ask(client, Method::POST, &path, &object).await
}

async fn define(client: &Client) {
    let ruled = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 100"}]});
    let spec = json!({"type": "object", "properties": {
        "plain": {"type": "integer"}, "ruled": ruled, "more": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("numbers.{CUSTOM_GROUP}")},
        "spec": {"group": CUSTOM_GROUP, "scope": "Cluster",
            "names": {"plural": "numbers", "kind": "Number"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}});
    made(client, DEFINITIONS, definition).await;
    eventually(DEADLINE, "the definition is served", async || {
        let answered = create(client, "none", json!({})).await;
        (answered.0 == 201).then_some(()).ok_or(answered)
    })
    .await;
}

/// Makes a policy of a kind for numbers that are labelled with its name, and binds it.
async fn policy(client: &Client, kind: &str, name: &str, more: (&str, Value)) {
    let rules = json!([{"operations": ["*"], "apiGroups": [CUSTOM_GROUP], "apiVersions": ["*"],
        "resources": ["numbers"]}]);
    let mut spec = json!({"matchConstraints": {"resourceRules": rules,
        "objectSelector": {"matchLabels": {"case": name}}}});
    spec[more.0] = more.1;
    let mut bound = json!({"policyName": name});
    if kind == "Mutating" {
        spec["reinvocationPolicy"] = "Never".into();
    } else {
        bound["validationActions"] = json!(["Deny"]);
    }
    let plural = format!("{}admissionpolic", kind.to_lowercase());
    for (plural, kind, spec) in [
        (
            format!("{plural}ies"),
            format!("{kind}AdmissionPolicy"),
            spec,
        ),
        (
            format!("{plural}ybindings"),
            format!("{kind}AdmissionPolicyBinding"),
            bound,
        ),
    ] {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "spec": spec});
        made(client, &format!("{GROUP}/{plural}"), object).await;
    }
}

/// Tries to create a number until the answer says this.
async fn until(client: &Client, case: &str, spec: Value, says: &str) {
    eventually(DEADLINE, "the policy is followed", async || {
        let answered = create(client, case, spec.clone()).await;
        let said = format!("{} {}", message(&answered), answered.1["spec"]);
        said.contains(says).then_some(()).ok_or(said)
    })
    .await;
}

#[tokio::test]
async fn policies_see_the_form_of_numbers_and_patches_begin_with_text() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    define(&client).await;
    let of_numbers = json!({"rules": [{"operations": ["*"], "apiGroups": [CUSTOM_GROUP],
        "apiVersions": ["*"], "resources": ["numbers"]}]});
    let hooks = ["label", "float"].map(|name| hook(&webhook, name, of_numbers.clone()));
    configure(
        &client,
        &webhook,
        "mutatingwebhookconfigurations",
        hooks.to_vec(),
    )
    .await;

    // Rules see a float, as long as nothing has written the object.
    let float = json!({"ruled": 5.0});
    let fails = "expected int, got float64";
    until(&client, "none", float.clone(), fails).await;
    // What a webhook patches is the text of the object, and so are its other numbers.
    until(&client, "label", float.clone(), r#"{"ruled":5}"#).await;
    let seen = webhook.take("/label").remove(0);
    assert_eq!(seen["request"]["object"]["spec"], json!({"ruled": 5}));
    until(&client, "float", json!({}), fails).await;

    let checked = json!([{"expression": "object.spec.plain + 1 > 0"}]);
    policy(&client, "Validating", "validated", ("validations", checked)).await;
    let refused = "resulted in error: no such overload";
    until(&client, "validated", json!({"plain": 5.0}), refused).await;
    until(&client, "validated", json!({"plain": 5}), r#"{"plain":5}"#).await;

    let patch = "[JSONPatch{op: 'add', path: '/spec/more', value: 5.0}]";
    let patch = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]);
    policy(&client, "Mutating", "patched", ("mutations", patch)).await;
    until(&client, "patched", float.clone(), r#"{"more":5,"ruled":5}"#).await;
    let overlay = "Object{spec: Object.spec{more: 5}}";
    let overlay = json!([{"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": overlay}}]);
    policy(&client, "Mutating", "merged", ("mutations", overlay)).await;
    until(
        &client,
        "merged",
        json!({"ruled": 5}),
        r#"{"more":5,"ruled":5}"#,
    )
    .await;
    until(&client, "merged", float, fails).await;
}
