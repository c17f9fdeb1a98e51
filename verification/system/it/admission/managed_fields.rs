//! Managed fields that webhooks and policies have made unreadable: the object keeps those from before, and the client
//! is warned once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::mutating_policies::policy;
use super::{Answered, CONFIG_MAPS, agreed, ask, config_map, configure, create, hook, message};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/d/scale?fieldManager=scaler";

/// The warning, but for the reason at its end.
const UNREADABLE: &str = ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
     outdated mutating admission controller; please fix your requests: ";

/// The replicas that webhooks and policies set in a Scale, so that a test sees that they were asked.
const REPLICAS: u32 = 7;

fn answer(path: &str, review: &Value) -> Reply {
    let set = |at: &str, value: Value| json!({"op": "replace", "path": at, "value": value});
    let operation = |value: &str| set("/metadata/managedFields/0/operation", json!(value));
    let patch = match path {
        "/spoil" | "/first-spoils" | "/spoils" => json!([operation("Guess")]),
        "/second-mends" => json!([operation("Update")]),
        "/spoils-more" => json!([set(
            "/metadata/managedFields/0/fieldsType",
            json!("FieldsV9")
        )]),
        "/scale" => json!([operation("Guess"), set("/spec/replicas", json!(REPLICAS))]),
        _ => return agreed(review, json!({})),
    };
    let patch = STANDARD.encode(patch.to_string());
    agreed(review, json!({"patchType": "JSONPatch", "patch": patch}))
}

/// Asserts that the client is warned once about managed fields, with a reason that begins like this.
fn is_warned(answered: &Answered, why: &str) {
    let warnings: Vec<_> = answered
        .2
        .iter()
        .filter(|it| it.contains("managedFields"))
        .collect();
    let expected = format!("299 - \"{UNREADABLE}{why}");
    assert!(
        warnings.len() == 1 && warnings[0].starts_with(&expected),
        "{} {:?}",
        message(answered),
        answered.2
    );
}

/// Returns manager and operation of each entry.
fn managers<'a>(object: &'a Value) -> Vec<(&'a str, &'a str)> {
    let entries = object["metadata"]["managedFields"].as_array();
    let both = |entry: &'a Value| {
        let text = |member: &str| entry[member].as_str().unwrap_or_default();
        (text("manager"), text("operation"))
    };
    entries.into_iter().flatten().map(both).collect()
}

async fn create_deployment(client: &Client) {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    let path = format!("{DEPLOYMENTS}?fieldManager=creator");
    let created = ask(client, Method::POST, &path, &deployment).await;
    assert_eq!(created.0, 201, "{}", message(&created));
}

/// Asserts that a Scale was changed, and that managers of the deployment and of its replicas are still known.
async fn is_scaled(client: &Client, scaled: &Answered) {
    assert_eq!(scaled.0, 200, "{}", message(scaled));
    assert_eq!(scaled.1["spec"]["replicas"], REPLICAS);
    is_warned(scaled, "");
    let path = format!("{DEPLOYMENTS}/d");
    let deployment = ask(client, Method::GET, &path, &Value::Null).await.1;
    assert_eq!(deployment["spec"]["replicas"], REPLICAS);
    let mut managers = managers(&deployment);
    managers.sort_unstable();
    assert_eq!(managers, [("creator", "Update"), ("scaler", "Update")]);
}

#[tokio::test]
async fn those_that_webhooks_make_unreadable_are_as_before() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let of = |case: &str| json!({"objectSelector": {"matchLabels": {"case": case}}});
    let hooks = vec![
        hook(&webhook, "spoil", json!({})),
        hook(&webhook, "first-spoils", of("mended")),
        hook(&webhook, "second-mends", of("mended")),
        hook(&webhook, "spoils", of("twice")),
        hook(&webhook, "spoils-more", of("twice")),
    ];
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;

    let query = "?fieldManager=creator";
    for case in ["spoil", "twice"] {
        let created = create(&client, &config_map(case, case), query).await;
        assert_eq!(created.0, 201, "{}", message(&created));
        assert_eq!(managers(&created.1), [("creator", "Update")]);
        is_warned(&created, "operation must be `Apply` or `Update`");
    }
    let path = format!("{CONFIG_MAPS}/spoil?fieldManager=other");
    let patched = ask(
        &client,
        Method::PATCH,
        &path,
        &json!({"data": {"other": "v"}}),
    )
    .await;
    let both = [("creator", "Update"), ("other", "Update")];
    assert_eq!(managers(&patched.1), both, "{}", message(&patched));
    is_warned(&patched, "operation must be `Apply` or `Update`");
    // They are looked at when all have changed the object.
    let mended = create(&client, &config_map("mended", "mended"), query).await;
    assert_eq!(managers(&mended.1), [("creator", "Update")]);
    assert!(mended.2.is_empty(), "{:?}", mended.2);
    assert_eq!(webhook.take("/first-spoils").len(), 1);
}

#[tokio::test]
async fn those_of_a_scale_that_webhooks_make_unreadable_are_as_before() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let scales = json!({"objectSelector": {}, "rules": [{"operations": ["UPDATE"],
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"]}]});
    let hooks = vec![hook(&webhook, "scale", scales)];
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;
    create_deployment(&client).await;
    let scale = json!({"spec": {"replicas": 2}});
    let scaled = ask(&client, Method::PATCH, SCALE, &scale).await;
    is_scaled(&client, &scaled).await;
}

/// Returns the mutations that spoil the first entry, and make another change as well.
fn mutations(change: &str) -> Value {
    let spoil =
        "JSONPatch{op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Guess'}";
    let expression = format!("[{spoil}, {change}]");
    json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}])
}

#[tokio::test]
async fn those_that_policies_make_unreadable_are_as_before() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let change = "JSONPatch{op: 'add', path: '/data/policy', value: 'asked'}";
    policy(&client, ("spoil", "spoil"), mutations(change), json!({})).await;
    let created = eventually(DEADLINE, "the policy is followed", async || {
        let path = format!("{CONFIG_MAPS}?fieldManager=creator&dryRun=All");
        let created = ask(&client, Method::POST, &path, &config_map("a", "spoil")).await;
        assert_eq!(created.0, 201, "{}", message(&created));
        (created.1["data"]["policy"] == "asked").then_some(created)
    })
    .await;
    assert_eq!(managers(&created.1), [("creator", "Update")]);
    is_warned(&created, "operation must be `Apply` or `Update`");
}

#[tokio::test]
async fn those_of_a_scale_that_policies_make_unreadable_are_as_before() {
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let rules = json!({"resourceRules": [{"operations": ["UPDATE"], "apiGroups": ["apps"],
        "apiVersions": ["v1"], "resources": ["deployments/scale"]}]});
    let change = format!("JSONPatch{{op: 'replace', path: '/spec/replicas', value: {REPLICAS}}}");
    let of_scales = json!({"matchConstraints": rules});
    policy(&client, ("scale", ""), mutations(&change), of_scales).await;
    create_deployment(&client).await;
    let scale = json!({"spec": {"replicas": 2}});
    eventually(DEADLINE, "the policy is followed", async || {
        let dry = format!("{SCALE}&dryRun=All");
        let scaled = ask(&client, Method::PATCH, &dry, &scale).await;
        scaled.1["spec"]["replicas"] != 2
    })
    .await;
    let scaled = ask(&client, Method::PATCH, SCALE, &scale).await;
    is_scaled(&client, &scaled).await;
}
