//! The times of admission.

use super::*;

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
