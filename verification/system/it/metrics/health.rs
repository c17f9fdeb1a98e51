//! The results of health checks, which are served apart from the other metrics.

use super::*;

#[tokio::test]
async fn the_results_of_checks_are_counted_by_the_path_that_asks() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let slis = async || {
        let (status, text) = fixture.get("/metrics/slis").await;
        assert_eq!(status, StatusCode::OK);
        Scrape(String::from_utf8(text.into()).expect("text"))
    };
    let before = slis().await;
    let (status, _) = fixture.get("/livez").await;
    assert_eq!(status, StatusCode::OK);
    // A check that is left out, or that is asked for by itself, has no result.
    for path in ["/livez?exclude=ping", "/livez/ping"] {
        assert_eq!(fixture.get(path).await.0, StatusCode::OK);
    }
    let after = slis().await;
    let (ping, log, livez) = (("name", "ping"), ("name", "log"), ("type", "livez"));
    let (all, passed) = ("kubernetes_healthchecks_total", ("status", "success"));
    after.rose(&before, 1.0, all, &[ping, livez, passed]);
    after.rose(&before, 2.0, all, &[log, livez, passed]);
    after.rose(&before, 0.0, all, &[ping, ("type", "healthz")]);
    let newest = after.value("kubernetes_healthcheck", &[ping, livez]);
    assert!((newest - 1.0).abs() < f64::EPSILON);
    assert!(after.value("process_start_time_seconds", &[]) > 1e9);
    let (_, index) = fixture.get("/").await;
    let index: Value = serde_json::from_slice(&index).expect("JSON");
    let paths = index["paths"].as_array().expect("paths");
    assert!(paths.contains(&json!("/metrics/slis")));
}
