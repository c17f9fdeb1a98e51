//! The metrics of requests: what was asked, how it was answered, and what is under way.

use super::*;

/// The labels of all requests about ConfigMaps.
const MAPS: [(&str, &str); 4] = [
    ("group", ""),
    ("version", "v1"),
    ("resource", "configmaps"),
    ("component", "apiserver"),
];

fn maps<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&MAPS, more].concat()
}

#[tokio::test]
async fn requests_are_counted_by_what_they_ask_and_how_they_end() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let one = format!("{CONFIG_MAPS}/a");
    let applied = format!("{CONFIG_MAPS}/applied?fieldManager=me");
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    let (json, merge) = ("application/json", "application/merge-patch+json");
    let logs = "/api/v1/namespaces/default/pods/none/log";
    let all = "/api/v1/configmaps";
    let object = config_map("a", 1).to_string();
    let other = config_map("applied", 1).to_string();
    let dry_object = config_map("dry", 1).to_string();
    let (resource, namespace, cluster) = ("resource", "namespace", "cluster");
    let requests: [(&str, &str, &str, &str, &str, &str, &str); 12] = [
        ("POST", CONFIG_MAPS, json, &object, "POST", resource, "201"),
        ("POST", CONFIG_MAPS, json, &object, "POST", resource, "409"),
        ("POST", &dry, json, &dry_object, "POST", resource, "201"),
        ("GET", &one, json, "", "GET", resource, "200"),
        ("GET", CONFIG_MAPS, json, "", "LIST", namespace, "200"),
        ("GET", all, json, "", "LIST", cluster, "200"),
        ("PUT", &one, json, &object, "PUT", resource, "200"),
        ("PATCH", &one, merge, "{}", "PATCH", resource, "200"),
        (
            "PATCH",
            &applied,
            "application/apply-patch+yaml",
            &other,
            "APPLY",
            resource,
            "201",
        ),
        ("DELETE", &one, json, "", "DELETE", resource, "200"),
        ("DELETE", CONFIG_MAPS, json, "", "DELETE", namespace, "200"),
        ("GET", logs, json, "", "CONNECT", resource, "404"),
    ];
    for (method, path, media_type, body, verb, scope, code) in requests {
        let before = fixture.scrape().await;
        let (status, answer) = fixture.ask(method, path, media_type, body.as_bytes()).await;
        assert_eq!(status.as_str(), code, "{method} {path}: {answer:?}");
        let after = fixture.scrape().await;
        let mut labels = maps(&[("verb", verb), ("scope", scope), ("subresource", "")]);
        if path == logs {
            labels = vec![
                ("verb", verb),
                ("scope", scope),
                ("resource", "pods"),
                ("subresource", "log"),
            ];
        }
        let run = if path == dry { "All" } else { "" };
        let with_run = [&*labels, &[("dry_run", run)]].concat();
        let counted = [&*with_run, &[("code", code)]].concat();
        after.rose(&before, 1.0, "apiserver_request_total", &counted);
        after.rose(
            &before,
            1.0,
            "apiserver_request_duration_seconds_count",
            &with_run,
        );
        // Only reads are measured.
        let is_read = ["GET", "LIST"].contains(&verb);
        assert_size(&before, &after, &labels, is_read.then_some(answer.len()));
    }
}

/// Asserts that one response of this size was measured between two scrapes, or none.
#[track_caller]
fn assert_size(before: &Scrape, after: &Scrape, labels: &[(&str, &str)], bytes: Option<usize>) {
    let count = f64::from(u8::from(bytes.is_some()));
    after.rose(before, count, "apiserver_response_sizes_count", labels);
    #[allow(clippy::cast_precision_loss, reason = "sizes of some kilobytes")]
    let sum = bytes.unwrap_or_default() as f64;
    after.rose(before, sum, "apiserver_response_sizes_sum", labels);
    for bound in [1_000, 10_000] {
        let within = f64::from(u8::from(bytes.is_some_and(|bytes| bytes <= bound)));
        let bound = format!("{bound}.0");
        let bucket = [labels, &[("le", &*bound)]].concat();
        after.rose(before, within, "apiserver_response_sizes_bucket", &bucket);
    }
}

#[tokio::test]
async fn a_watch_is_counted_while_it_runs_and_by_its_events() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    fixture.config_map("small", 1).await;
    let before = fixture.scrape().await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let path = format!("{CONFIG_MAPS}?{query}&fieldSelector=metadata.namespace%3Ddefault");
    let mut watch = fixture.send(Request::get(path), b"").await;
    assert_eq!(watch.status(), StatusCode::OK);
    let running = maps(&[
        ("verb", "WATCH"),
        ("scope", "namespace"),
        ("subresource", ""),
    ]);
    let name = "apiserver_longrunning_requests";
    fixture.scrape().await.rose(&before, 1.0, name, &running);
    let mut text = String::new();
    let mut read_until = async |end: &str| {
        while !text.contains(end) {
            let frame = watch
                .body_mut()
                .frame()
                .await
                .expect("goes on")
                .expect("a frame");
            text += std::str::from_utf8(frame.data_ref().expect("data")).expect("text");
        }
    };
    read_until("initial-events-end").await;
    let begun = fixture.scrape().await;
    let kind = [("group", ""), ("version", "v1"), ("resource", "configmaps")];
    let scoped = [&kind[..], &[("scope", "namespace")]].concat();
    begun.rose(
        &before,
        1.0,
        "apiserver_watch_list_duration_seconds_count",
        &scoped,
    );
    // The object, then the bookmark.
    begun.rose(&before, 2.0, "apiserver_watch_events_total", &kind);
    begun.rose(&before, 2.0, "apiserver_watch_events_sizes_count", &kind);
    fixture.config_map("large", 3_000).await;
    read_until("xxx").await;
    let more = fixture.scrape().await;
    more.rose(&begun, 1.0, "apiserver_watch_events_total", &kind);
    more.rose(&begun, 1.0, "apiserver_watch_events_sizes_count", &kind);
    for (bound, events) in [("2048.0", 0.0), ("4096.0", 1.0)] {
        let bucket = [&kind[..], &[("le", bound)]].concat();
        more.rose(
            &begun,
            events,
            "apiserver_watch_events_sizes_bucket",
            &bucket,
        );
    }
    more.rose(
        &before,
        0.0,
        "apiserver_request_total",
        &maps(&[("verb", "LIST")]),
    );
    drop(watch);
    fixture
        .until(|now| now.value(name, &running) == before.value(name, &running))
        .await;
}

#[tokio::test]
async fn requests_in_flight_are_counted_until_their_answer_is_gone() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let name = "apiserver_current_inflight_requests";
    let (reads, writes) = (
        [("request_kind", "readOnly")],
        [("request_kind", "mutating")],
    );
    let before = fixture.scrape().await;
    assert!(before.value(name, &writes).abs() < 1e-9);
    let read = fixture.send(Request::get(CONFIG_MAPS), b"").await;
    let body = config_map("a", 1).to_string();
    let write = fixture
        .send(Request::post(CONFIG_MAPS), body.as_bytes())
        .await;
    let during = fixture.scrape().await;
    during.rose(&before, 1.0, name, &reads);
    during.rose(&before, 1.0, name, &writes);
    drop((read, write));
    let after = fixture.scrape().await;
    after.rose(&before, 0.0, name, &reads);
    after.rose(&before, 0.0, name, &writes);
}

/// A body that takes long enough to decode that it is moved to other threads.
fn large_body() -> Vec<u8> {
    config_map("large", 100_000).to_string().into_bytes()
}

#[tokio::test]
async fn large_work_is_counted_by_its_kind() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let before = fixture.scrape().await;
    let (status, _) = fixture
        .ask("POST", &path, "application/json", &large_body())
        .await;
    assert_eq!(status, StatusCode::CREATED);
    let after = fixture.scrape().await;
    for family in [
        "ringwatch_large_work_wait_seconds_count",
        "ringwatch_large_work_run_seconds_count",
    ] {
        after.rose(&before, 1.0, family, &[]);
        assert_eq!(after.labels(family), ["work"]);
    }
    after.rose(&before, 0.0, "ringwatch_large_work_requests", &[]);
}
