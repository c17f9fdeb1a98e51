//! Webhooks that change objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::{CONFIG_MAPS, agreed, ask, ask_as, config_map, configure, create, hook, message};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

fn patched(review: &Value, patch: Value) -> Reply {
    let patch = STANDARD.encode(patch.to_string());
    agreed(review, json!({"patchType": "JSONPatch", "patch": patch}))
}

fn set(path: &str, value: &str) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

fn answer(path: &str, review: &Value) -> Reply {
    let object = &review["request"]["object"];
    let operation = review["request"]["operation"].as_str().unwrap_or_default();
    match path {
        "/stamp" if operation == "DELETE" => agreed(review, json!({})),
        "/stamp" => patched(review, set("/data/stamped", operation)),
        "/old" => {
            let mut answer =
                json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"});
            let patch = STANDARD.encode(set("/data/stamped", "beta").to_string());
            answer["response"] = json!({"allowed": true, "patch": patch});
            Reply::Json(answer)
        }
        // Says what it has seen, and wants to see what comes later.
        "/chain-first" => {
            let seen = object["data"]["second"].as_str().unwrap_or("nothing");
            patched(review, set("/data/first", &format!("saw {seen}")))
        }
        "/rename" if operation == "CREATE" => patched(review, set("/metadata/name", "renamed")),
        "/chain-second" => patched(review, set("/data/second", "something")),
        "/pods" => patched(
            review,
            json!([{"op": "add", "path": "/spec/containers/-",
                "value": {"name": "sidecar", "image": "proxy"}}]),
        ),
        _ => agreed(review, json!({})),
    }
}

fn changing_hooks(webhook: &Webhook) -> Vec<Value> {
    let again = json!({"reinvocationPolicy": "IfNeeded",
        "objectSelector": {"matchLabels": {"case": "chain"}}});
    let second = json!({"objectSelector": {"matchLabels": {"case": "chain"}}});
    let pods = json!({"objectSelector": {}, "rules": [{"operations": ["CREATE"],
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
    vec![
        hook(webhook, "stamp", json!({})),
        hook(
            webhook,
            "old",
            json!({"admissionReviewVersions": ["v1beta1", "v1"]}),
        ),
        hook(webhook, "chain-first", again),
        hook(webhook, "chain-second", second),
        hook(webhook, "pods", pods),
    ]
}

#[tokio::test]
async fn what_webhooks_change_is_stored() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let hooks = changing_hooks(&webhook);
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;

    let created = create(&client, &config_map("a", "stamp"), "?fieldManager=m").await;
    assert_eq!(created.1["data"], json!({"k": "v", "stamped": "CREATE"}));
    let review = webhook.take("/stamp").remove(0);
    let request = &review["request"];
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "ConfigMap"})
    );
    assert_eq!(
        request["resource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    for (member, value) in [
        ("name", json!("a")),
        ("namespace", json!("default")),
        ("operation", json!("CREATE")),
        ("dryRun", json!(false)),
        ("oldObject", Value::Null),
        (
            "options",
            json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m"}),
        ),
    ] {
        assert_eq!(request[member], value, "{member}");
    }
    assert!(request["userInfo"]["username"].is_string(), "{request}");
    assert_eq!(request["object"]["apiVersion"], "v1");
    assert!(request["object"]["metadata"]["uid"].is_null());
    every_way_to_write_is_asked_about(&client, &webhook).await;

    let old = create(&client, &config_map("old", "old"), "").await;
    assert_eq!(old.1["data"]["stamped"], "beta", "{}", message(&old));

    // The first sees what the second has done, once.
    let chained = create(&client, &config_map("chain", "chain"), "").await;
    assert_eq!(
        chained.1["data"],
        json!({"k": "v", "first": "saw something", "second": "something"})
    );
    assert_eq!(webhook.take("/chain-first").len(), 2);
    assert_eq!(webhook.take("/chain-second").len(), 1);

    // What a webhook adds gets its defaults.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "x"}]}});
    let pods = "/api/v1/namespaces/default/pods";
    let created = ask(&client, Method::POST, pods, &pod).await;
    let sidecar = &created.1["spec"]["containers"][1];
    assert_eq!(sidecar["image"], "proxy", "{}", message(&created));
    assert_eq!(sidecar["imagePullPolicy"], "Always");
    assert_eq!(webhook.take("/pods").len(), 1);
}

/// Updates, patches, applies and deletions, with the object as it was.
async fn every_way_to_write_is_asked_about(client: &Client, webhook: &Webhook) {
    let path = format!("{CONFIG_MAPS}/a");
    let update = |text: &str| {
        let mut object = config_map("a", "stamp");
        object["data"]["k"] = json!(text);
        object
    };
    let apply = "application/apply-patch+yaml";
    let applied = format!("{path}?fieldManager=other&force=true");
    for (answered, k) in [
        (ask(client, Method::PUT, &path, &update("put")).await, "put"),
        (
            ask(
                client,
                Method::PATCH,
                &path,
                &json!({"data": {"k": "patched"}}),
            )
            .await,
            "patched",
        ),
        (
            ask_as(client, Method::PATCH, &applied, &update("applied"), apply).await,
            "applied",
        ),
    ] {
        assert_eq!(answered.0, 200, "{}", message(&answered));
        assert_eq!(answered.1["data"], json!({"k": k, "stamped": "UPDATE"}));
    }
    let updates = webhook.take("/stamp");
    // One that began with what the cache had a moment ago is tried, and asked about, again.
    assert!(updates.len() >= 3, "{updates:?}");
    for review in updates {
        let request = &review["request"];
        assert_eq!(request["operation"], "UPDATE");
        assert!(request["oldObject"]["metadata"]["uid"].is_string());
        assert_ne!(
            request["oldObject"]["data"]["k"],
            request["object"]["data"]["k"]
        );
    }
    let applied = format!("{CONFIG_MAPS}/new?fieldManager=other");
    let mut object = config_map("new", "stamp");
    object["metadata"]["namespace"] = json!("default");
    let answered = ask_as(client, Method::PATCH, &applied, &object, apply).await;
    assert_eq!(answered.0, 201, "{}", message(&answered));
    assert_eq!(answered.1["data"]["stamped"], "CREATE");
    let options = &webhook.take("/stamp").remove(0)["request"]["options"];
    assert_eq!(options["kind"], "CreateOptions");
    let deleted = ask(client, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(deleted.0, 200, "{}", message(&deleted));
    // The last tells of the object that was deleted.
    let request = &webhook.take("/stamp").pop().expect("asked")["request"];
    assert_eq!(request["operation"], "DELETE");
    assert_eq!(
        (&request["object"], &request["oldObject"]["data"]["k"]),
        (&Value::Null, &json!("applied"))
    );
    assert_eq!(request["options"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn the_status_of_a_deletion_tells_the_name_that_a_webhook_gave() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let hooks = vec![hook(&webhook, "rename", json!({}))];
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;
    let path = format!("{CONFIG_MAPS}/asked");
    let apply = "application/apply-patch+yaml";
    let applied = format!("{path}?fieldManager=m");
    let object = config_map("asked", "rename");
    let created = ask_as(&client, Method::PATCH, &applied, &object, apply).await;
    assert_eq!(created.0, 201, "{}", message(&created));
    let deleted = ask(&client, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(deleted.0, 200, "{}", message(&deleted));
    let details =
        json!({"name": "renamed", "kind": "configmaps", "uid": created.1["metadata"]["uid"]});
    assert_eq!(deleted.1["details"], details);
}

#[tokio::test]
async fn webhooks_without_side_effects_see_dry_runs() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let hooks = vec![hook(&webhook, "stamp", json!({}))];
    configure(&client, &webhook, "mutatingwebhookconfigurations", hooks).await;
    let dry = create(&client, &config_map("a", "stamp"), "?dryRun=All").await;
    assert_eq!(dry.1["data"]["stamped"], "CREATE");
    assert_eq!(webhook.take("/stamp")[0]["request"]["dryRun"], true);
    let effects = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "effects"},
        "webhooks": [hook(&webhook, "effects", json!({"sideEffects": "Some"}))]});
    let path = format!("{}/mutatingwebhookconfigurations", super::GROUP);
    let refused = ask(&client, Method::POST, &path, &effects).await;
    let why = "webhooks[0].sideEffects: Unsupported value: \"Some\"";
    assert!(message(&refused).contains(why), "{}", message(&refused));
}

#[tokio::test]
async fn switched_off_plugins_ask_no_webhooks() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&[
        "--storage-backend=memory",
        "--disable-admission-plugins=MutatingAdmissionWebhook",
    ])
    .await;
    let validating = "validatingwebhookconfigurations";
    configure(&client, &webhook, validating, Vec::new()).await;
    let hooks = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "m"},
        "webhooks": [hook(&webhook, "stamp", json!({}))]});
    let path = format!("{}/mutatingwebhookconfigurations", super::GROUP);
    assert_eq!(ask(&client, Method::POST, &path, &hooks).await.0, 201);
    // What comes later is followed later, so the first would be followed by now.
    let removed = format!("{}/validatingwebhookconfigurations/tests", super::GROUP);
    ask(&client, Method::DELETE, &removed, &Value::Null).await;
    configure(&client, &webhook, validating, Vec::new()).await;
    let created = create(&client, &config_map("a", "stamp"), "").await;
    assert_eq!(created.1["data"], json!({"k": "v"}));
}
