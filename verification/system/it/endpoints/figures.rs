//! The metrics of requests and of the store, under kube-apiserver's names.

use super::*;

#[tokio::test]
async fn watches_are_counted_before_the_first() {
    let fixture = Fixture::start(false).await;
    let running = fixture.metrics().await;
    assert!(
        running.contains(
            "apiserver_longrunning_requests{verb=\"WATCH\",group=\"\",version=\"v1\",\
             resource=\"pods\",subresource=\"\",scope=\"cluster\",component=\"apiserver\"} 0"
        ),
        "{running}"
    );
}

#[tokio::test]
async fn lists_from_the_store_are_counted_by_what_they_cost() {
    let fixture = Fixture::start(false).await;
    for name in ["a", "b", "c"] {
        fixture.config_map(name, json!({})).await;
    }
    let selector = "fieldSelector=metadata.name!%3Da";
    let list = fixture.get(&format!("{CONFIG_MAPS}?{selector}")).await;
    assert_eq!(list.json()["items"].as_array().map(Vec::len), Some(2));
    let text = fixture.metrics().await;
    for (family, value) in [
        ("apiserver_storage_list_total", 1),
        ("apiserver_storage_list_fetched_objects_total", 3),
        ("apiserver_storage_list_evaluated_objects_total", 3),
        ("apiserver_storage_list_returned_objects_total", 2),
    ] {
        let labels = "group=\"\",resource=\"configmaps\"";
        let line = format!("{family}{{{labels}}} {value}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[tokio::test]
async fn requests_to_the_store_are_counted_by_what_they_do() {
    let fixture = Fixture::start(false).await;
    // The server itself has written ConfigMaps at its start.
    let at_start = fixture.metrics().await;
    fixture.config_map("a", json!({})).await;
    let one = format!("{CONFIG_MAPS}/a");
    fixture.get(&one).await;
    fixture.get(CONFIG_MAPS).await;
    let patch = json!({"data": {"x": "y"}});
    fixture.patch(&one, "merge-patch+json", patch).await;
    fixture.ask(request("DELETE", &one, Bytes::new())).await;
    let labels =
        |operation| format!("{{operation=\"{operation}\",group=\"\",resource=\"configmaps\"}}");
    let text = fixture.metrics().await;
    for operation in ["create", "get", "list", "update", "delete"] {
        let labels = labels(operation);
        for family in ["etcd_requests_total", "etcd_request_duration_seconds_count"] {
            let start = format!("{family}{labels} ");
            let value = |text: &str| -> Option<u32> {
                let line = text.lines().find_map(|line| line.strip_prefix(&start));
                line.map(|value| value.parse().expect("a number"))
            };
            let now = value(&text).unwrap_or_else(|| panic!("no {start} in {text}"));
            let count = now - value(&at_start).unwrap_or_default();
            // The registry reads before it writes.
            assert!(count == 1 || operation == "get", "{start}{count}");
        }
    }
    assert!(!text.contains("etcd_request_errors_total{"), "{text}");
    let future = format!("{CONFIG_MAPS}?resourceVersion=99999&resourceVersionMatch=Exact");
    fixture.get(&future).await;
    let text = fixture.metrics().await;
    let line = format!("etcd_request_errors_total{} 1\n", labels("list"));
    assert!(text.contains(&line), "{line} in {text}");
}

#[tokio::test]
async fn the_lists_of_the_watch_cache_are_requests_to_the_store() {
    let fixture = Fixture::start(true).await;
    let text = fixture.metrics().await;
    let labels = "{operation=\"list\",group=\"apps\",resource=\"deployments\"}";
    let line = format!("etcd_requests_total{labels} 1\n");
    assert!(text.contains(&line), "{line} in {text}");
}
