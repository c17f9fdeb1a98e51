//! The times of admission.

use super::*;
use crate::support::webhook::{Reply, Webhook};

const STEPS: &str = "apiserver_admission_step_admission_duration_seconds";
const PLUGINS: &str = "apiserver_admission_controller_admission_duration_seconds";

#[tokio::test]
async fn each_step_and_plugin_is_measured_by_operation_and_outcome() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    fixture.config_map("a", 1).await;
    let before = fixture.scrape().await;
    let path = format!("{CONFIG_MAPS}/a");
    let (status, _) = fixture.ask("DELETE", &path, "application/json", b"").await;
    assert_eq!(status, StatusCode::OK);
    let body = config_map("a", 1).to_string().into_bytes();
    let path = "/api/v1/namespaces/nowhere/configmaps";
    let (status, _) = fixture.ask("POST", path, "application/json", &body).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let scrape = fixture.scrape().await;

    let (steps, plugins) = (&format!("{STEPS}_count"), &format!("{PLUGINS}_count"));
    let (deletion, kept) = (("operation", "DELETE"), ("rejected", "false"));
    let (creation, refused) = (("operation", "CREATE"), ("rejected", "true"));
    let (admit, validate) = (("type", "admit"), ("type", "validate"));
    let lifecycle = ("name", "NamespaceLifecycle");
    for (step, name) in [
        (admit, lifecycle),
        (validate, ("name", "ValidatingAdmissionWebhook")),
    ] {
        scrape.rose(&before, 1.0, steps, &[deletion, kept, step]);
        scrape.rose(&before, 1.0, plugins, &[deletion, kept, step, name]);
    }
    scrape.rose(&before, 1.0, steps, &[creation, refused, admit]);
    scrape.rose(
        &before,
        1.0,
        plugins,
        &[creation, refused, admit, lifecycle],
    );
    // What is refused is not validated, and a plugin is measured only in what it takes part in.
    scrape.rose(&before, 0.0, steps, &[creation, refused, validate]);
    scrape.rose(&before, 0.0, plugins, &[deletion, validate, lifecycle]);
    scrape.rose(
        &before,
        0.0,
        plugins,
        &[deletion, ("name", "ResourceQuota")],
    );
    assert_eq!(
        scrape.labels(plugins),
        ["name", "operation", "rejected", "type"]
    );
    assert_eq!(scrape.labels(steps), ["operation", "rejected", "type"]);
    let bucket = format!("{STEPS}_bucket");
    assert!(scrape.value(&bucket, &[deletion, ("le", "2.5")]) >= 1.0);
}

/// Has a webhook called when configmaps are created.
async fn add_webhook(fixture: &Fixture, name: &str, policy: &str, client_config: &Value) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
            "clientConfig": client_config,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    fixture.create(path, &configuration).await;
}

#[tokio::test]
async fn calls_of_webhooks_are_counted_by_how_they_end() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let (open, closed) = ("open.example.com", "closed.example.com");
    // Nobody listens at this port.
    let unreachable = json!({"url": "https://127.0.0.1:1/"});
    add_webhook(&fixture, open, "Ignore", &unreachable).await;
    let requests = "apiserver_admission_webhook_request_total";
    // The configuration takes effect soon.
    let mut number = 0;
    let called = eventually(DEADLINE, "the webhook is called", async || {
        fixture.config_map(&format!("a{number}"), 1).await;
        number += 1;
        let scrape = fixture.scrape().await;
        (scrape.value(requests, &[]) > 0.0).then_some(scrape)
    });
    let scrape = called.await;
    let failed = [
        ("code", "503"),
        ("name", open),
        ("operation", "CREATE"),
        ("rejected", "false"),
        ("type", "validating"),
    ];
    let nothing = Scrape(String::new());
    scrape.rose(&nothing, 1.0, requests, &failed);
    let times = "apiserver_admission_webhook_admission_duration_seconds_count";
    scrape.rose(&nothing, 1.0, times, &failed[1..]);
    let opened = "apiserver_admission_webhook_fail_open_count";
    scrape.rose(&nothing, 1.0, opened, &[failed[1], failed[4]]);
    assert!(scrape.0.contains(&format!("# TYPE {opened} counter\n")));

    let webhook = Webhook::start(|_, _| Reply::Text(418, "no".to_owned())).await;
    add_webhook(&fixture, closed, "Fail", &webhook.client_config("/")).await;
    let rejections = "apiserver_admission_webhook_rejection_count";
    let refused = [
        ("error_type", "calling_webhook_error"),
        ("name", closed),
        ("operation", "CREATE"),
        ("rejection_code", "418"),
        ("type", "validating"),
    ];
    let mut number = 0;
    eventually(DEADLINE, "the webhook refuses", async || {
        let body = config_map(&format!("b{number}"), 1).to_string();
        fixture
            .ask("POST", CONFIG_MAPS, "application/json", body.as_bytes())
            .await;
        number += 1;
        fixture.scrape().await.value(rejections, &refused) >= 1.0
    })
    .await;
}
