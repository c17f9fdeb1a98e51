//! The queues of controllers.

use super::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

#[tokio::test]
async fn definitions_that_are_cleaned_up_go_through_a_queue() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let name = "widgets.example.com";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    fixture.create(DEFINITIONS, &definition).await;
    eventually(DEADLINE, "the definition is served", async || {
        fixture.get(WIDGETS).await.0 == StatusCode::OK
    })
    .await;
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    fixture.create(WIDGETS, &widget).await;
    let queue = [("name", "crd_finalizer")];
    let before = fixture.scrape().await;
    assert!(
        before
            .0
            .contains("workqueue_adds_total{name=\"crd_finalizer\"} 0")
    );
    let path = format!("{DEFINITIONS}/{name}");
    let (status, _) = fixture.ask("DELETE", &path, "application/json", b"").await;
    assert_eq!(status, StatusCode::OK);
    let done = "workqueue_work_duration_seconds_count";
    let scrape = fixture.until(|it| it.value(done, &queue) >= 1.0).await;
    assert!(scrape.value("workqueue_adds_total", &queue) >= 1.0);
    assert!(scrape.value("workqueue_queue_duration_seconds_count", &queue) >= 1.0);
    assert!(scrape.value("workqueue_queue_duration_seconds_sum", &queue) >= 0.0);
    fixture
        .until(|it| it.value("workqueue_depth", &queue) == 0.0)
        .await;
}

#[tokio::test]
async fn aggregated_apis_that_are_checked_go_through_a_queue() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let queue = [("name", "RemoteAvailabilityController")];
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.away.example.com"},
        "spec": {
            "group": "away.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nowhere"},
        },
    });
    fixture
        .create("/apis/apiregistration.k8s.io/v1/apiservices", &service)
        .await;
    // It is unavailable, and checked again and again.
    let done = "workqueue_work_duration_seconds_count";
    let scrape = fixture.until(|it| it.value(done, &queue) >= 2.0).await;
    assert!(scrape.value("workqueue_adds_total", &queue) >= 2.0);
    assert_eq!(scrape.labels("workqueue_depth"), ["name"]);
}
