//! The metrics of the watch cache: what comes from the store, what goes to watchers, and what reads take from it.

use super::*;

const MAPS: [(&str, &str); 2] = [("group", ""), ("resource", "configmaps")];

/// Waits until the cache has all that was written so far, as a list without a version does.
async fn caught_up(fixture: &Fixture) -> Scrape {
    let (status, _) = fixture.get(CONFIG_MAPS).await;
    assert_eq!(status, StatusCode::OK);
    fixture.scrape().await
}

/// Reads a watch until it has sent this text.
async fn read_until(watch: &mut Response<Body>, end: &str) {
    let mut text = String::new();
    while !text.contains(end) {
        let frame = watch
            .body_mut()
            .frame()
            .await
            .expect("goes on")
            .expect("a frame");
        text += std::str::from_utf8(frame.data_ref().expect("data")).expect("text");
    }
}

#[tokio::test]
async fn events_are_counted_on_their_way_from_the_store_to_the_watcher() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    let at_start = caught_up(&fixture).await;
    assert!(
        (at_start.value("apiserver_watch_cache_initializations_total", &MAPS) - 1.0).abs() < 1e-9
    );
    let seconds = "apiserver_watch_cache_initialization_duration_seconds_count";
    assert!((at_start.value(seconds, &MAPS) - 1.0).abs() < 1e-9);
    for name in ["a", "b"] {
        fixture.config_map(name, 1).await;
    }
    let stored = caught_up(&fixture).await;
    for family in [
        "apiserver_watch_cache_events_received_total",
        "apiserver_storage_events_received_total",
    ] {
        stored.rose(&at_start, 2.0, family, &MAPS);
    }
    stored.rose(&at_start, 2.0, "ringwatch_window_events", &MAPS);
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=0");
    let mut watch = fixture.send(Request::get(path), b"").await;
    read_until(&mut watch, "\"name\":\"b\"").await;
    let begun = fixture.scrape().await;
    // Those of the namespace: the two, and the authority of the cluster.
    let initial = begun.value("apiserver_init_events_total", &MAPS)
        - stored.value("apiserver_init_events_total", &MAPS);
    assert!(initial >= 2.0, "{initial}");
    begun.rose(&stored, 1.0, "ringwatch_watchers", &MAPS);
    let object = fixture.config_map("c", 1).await;
    read_until(&mut watch, "\"name\":\"c\"").await;
    // Dispatched events are counted behind the watchers' signals.
    let dispatched = "apiserver_watch_cache_events_dispatched_total";
    let delivered = fixture
        .until(|now| now.value(dispatched, &MAPS) > begun.value(dispatched, &MAPS))
        .await;
    delivered.rose(
        &begun,
        1.0,
        "apiserver_watch_cache_events_received_total",
        &MAPS,
    );
    delivered.rose(&begun, 1.0, dispatched, &MAPS);
    let version = object["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let version: f64 = version.parse().expect("a number");
    let reached = delivered.value("apiserver_watch_cache_resource_version", &MAPS);
    assert!(reached >= version, "{reached} after {version}");
    assert!(delivered.value("ringwatch_feed_revision", &[]) >= version);
    drop(watch);
    fixture
        .until(|now| {
            now.value("ringwatch_watchers", &MAPS) == stored.value("ringwatch_watchers", &MAPS)
        })
        .await;
}

#[tokio::test]
async fn lists_from_the_cache_are_counted_by_what_they_read() {
    let fixture = Fixture::start(InProcessServer::builder()).await;
    for name in ["a", "b", "c"] {
        fixture.config_map(name, 1).await;
    }
    let counted = |before: &Scrape, after: &Scrape, fetched, returned| {
        let indexed = [&MAPS[..], &[("index", "")]].concat();
        after.rose(before, 1.0, "apiserver_cache_list_total", &indexed);
        after.rose(
            before,
            fetched,
            "apiserver_cache_list_fetched_objects_total",
            &indexed,
        );
        after.rose(
            before,
            returned,
            "apiserver_cache_list_returned_objects_total",
            &MAPS,
        );
    };
    let path = format!("{CONFIG_MAPS}?resourceVersion=0&fieldSelector=metadata.name");
    let before = caught_up(&fixture).await;
    fixture.get(&format!("{path}!%3Da")).await;
    let after = fixture.scrape().await;
    counted(&before, &after, 3.0, 2.0);
    let (consistent, waits) = (
        "apiserver_watch_cache_consistent_read_total",
        "apiserver_watch_cache_read_wait_seconds_count",
    );
    after.rose(&before, 0.0, consistent, &MAPS);
    // A list without a version must not be older than the newest write.
    fixture.get(CONFIG_MAPS).await;
    let fresh = fixture.scrape().await;
    counted(&after, &fresh, 3.0, 3.0);
    let outcome = [&MAPS[..], &[("success", "true"), ("fallback", "false")]].concat();
    fresh.rose(&after, 1.0, consistent, &outcome);
    fresh.rose(&after, 1.0, waits, &MAPS);
    let bound = [&MAPS[..], &[("le", "2.0")]].concat();
    assert!(
        fresh
            .0
            .contains("apiserver_watch_cache_read_wait_seconds_bucket{le=\"2.0\"")
    );
    assert!(fresh.value("apiserver_watch_cache_read_wait_seconds_bucket", &bound) >= 1.0);
}

#[tokio::test]
async fn encodings_that_find_no_room_are_evicted() {
    let fixture = Fixture::start(InProcessServer::builder().encodings_bytes_max(20_000)).await;
    for number in 0..20 {
        fixture.config_map(&format!("m{number}"), 2_000).await;
    }
    let before = fixture.scrape().await;
    // A list of all of them would keep only as many as there is room for.
    for number in 0..20 {
        let one = format!("resourceVersion=0&fieldSelector=metadata.name%3Dm{number}");
        fixture.get(&format!("{CONFIG_MAPS}?{one}")).await;
    }
    let evicted = |scrape: &Scrape| scrape.value("ringwatch_encoding_cache_evicted_total", &[]);
    let after = fixture.until(|now| evicted(now) > evicted(&before)).await;
    let made = "ringwatch_encoding_cache_made_total";
    assert!(after.value(made, &[]) > before.value(made, &[]));
    assert!(after.value("ringwatch_encoding_cache_bytes", &[]) <= 20_000.0);
}
