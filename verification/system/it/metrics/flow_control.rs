//! The metrics of priority and fairness: who is served, who waits, and who is refused.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;

/// The labels of requests of users whom no schema but the last one names.
const FLOW: [(&str, &str); 2] = [
    ("flow_schema", "global-default"),
    ("priority_level", "global-default"),
];

/// More requests than the seats, the queue and those that are refused together need.
const REQUESTS_MAX: u32 = 400;

/// Sends a list of a user who is no administrator, and holds its answer without reading it.
async fn list_as_jane(fixture: Arc<Fixture>) -> Response<Body> {
    let request = Request::get(CONFIG_MAPS).header("impersonate-user", "jane");
    fixture.send(request, b"").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_as_they_wait_and_as_they_are_served() {
    let builder = InProcessServer::builder()
        .flag("--authorization-mode=AlwaysAllow")
        .flag("--max-requests-inflight=2")
        .flag("--max-mutating-requests-inflight=1");
    let fixture = Arc::new(Fixture::start(builder).await);
    let before = fixture.scrape().await;
    let level = [("priority_level", "global-default")];
    assert!(before.value("apiserver_flowcontrol_nominal_limit_seats", &level) >= 1.0);
    let waiting =
        |scrape: &Scrape| scrape.value("apiserver_flowcontrol_current_inqueue_requests", &FLOW);
    let refused = |scrape: &Scrape| {
        let labels = [&FLOW[..], &[("reason", "queue-full")]].concat();
        scrape.value("apiserver_flowcontrol_rejected_requests_total", &labels)
    };
    // One after the other: the first get the seats, and the next wait.
    let mut flood = JoinSet::new();
    let mut sent = 0;
    let busy = loop {
        flood.spawn(list_as_jane(Arc::clone(&fixture)));
        sent += 1;
        assert!(sent < REQUESTS_MAX, "nobody waits");
        let now = fixture.scrape().await;
        if waiting(&now) >= 1.0 {
            break now;
        }
    };
    assert_eq!(
        busy.labels("apiserver_flowcontrol_current_inqueue_requests"),
        ["flow_schema", "priority_level"]
    );
    for family in [
        "apiserver_flowcontrol_current_executing_requests",
        "apiserver_flowcontrol_current_executing_seats",
    ] {
        assert!(busy.value(family, &FLOW) >= 1.0, "{family}");
    }
    let dispatched = "apiserver_flowcontrol_dispatched_requests_total";
    assert!(busy.value(dispatched, &FLOW) > before.value(dispatched, &FLOW));
    while refused(&fixture.scrape().await) < 1.0 {
        flood.spawn(list_as_jane(Arc::clone(&fixture)));
        sent += 1;
        assert!(sent < REQUESTS_MAX, "nobody is refused");
    }
    // Whoever waits is served when the answers before are gone.
    let (mut served, mut turned_away) = (0, 0);
    while let Some(answer) = flood.join_next().await {
        match answer.expect("no panic").status() {
            StatusCode::OK => served += 1,
            StatusCode::TOO_MANY_REQUESTS => turned_away += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!(served + turned_away, sent);
    let after = fixture.scrape().await;
    after.rose(
        &before,
        f64::from(turned_away),
        "apiserver_flowcontrol_rejected_requests_total",
        &FLOW,
    );
    after.rose(&before, f64::from(served), dispatched, &FLOW);
    let waits = "apiserver_flowcontrol_request_wait_duration_seconds_count";
    let executed = [&FLOW[..], &[("execute", "true")]].concat();
    assert!(
        after.value(waits, &executed) > before.value(waits, &executed),
        "{}",
        after.0
    );
    assert!(waiting(&after).abs() < 1e-9);
}
