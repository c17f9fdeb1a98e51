//! Encodings of objects for clients: made once, shared by all, and lists item by item.

use hyper::body::Body as _;

use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Starts watches of this media type and query.
async fn watches(fixture: &Fixture, accept: &str, query: &str, count: usize) -> Vec<Body> {
    let mut bodies = Vec::new();
    for _ in 0..count {
        let path = format!("{CONFIG_MAPS}?watch=1&{query}");
        let response = fixture.send(in_protobuf("GET", &path, accept, Vec::new()));
        let response = response.await;
        assert_eq!(response.status(), StatusCode::OK);
        bodies.push(response.into_body());
    }
    bodies
}

/// The next chunk of a watch.
pub(super) async fn chunk(body: &mut Body) -> Bytes {
    let frame = tokio::time::timeout(DEADLINE, body.frame()).await;
    let frame = frame.expect("in time").expect("a frame").expect("no error");
    frame.into_data().expect("data")
}

#[tokio::test]
async fn a_frame_is_made_once_for_watches_replays_and_initial_states() {
    for accept in ["application/json", PROTOBUF] {
        let fixture = Fixture::start(true).await;
        let before = fixture.config_map("before", json!({})).await;
        let version = &before["metadata"]["resourceVersion"];
        let since = format!("resourceVersion={}", version.as_str().expect("a version"));
        let made = || fixture.metric("ringwatch_encoding_cache_made_total");
        assert_eq!(made().await, 0);

        let mut live = watches(&fixture, accept, &since, 3).await;
        fixture.config_map("a", json!({"k": "v"})).await;
        let first = chunk(&mut live[0]).await;
        assert!(first.len() > 100);
        for body in &mut live[1..] {
            let same = chunk(body).await;
            assert_eq!(same.as_ptr(), first.as_ptr(), "not even a copy");
        }
        assert_eq!(made().await, 1, "{accept}");

        let mut replay = watches(&fixture, accept, &since, 1).await;
        assert_eq!(chunk(&mut replay[0]).await.as_ptr(), first.as_ptr());
        assert_eq!(made().await, 1, "{accept}");

        let mut initial = watches(&fixture, accept, "resourceVersion=0", 2).await;
        for body in &mut initial {
            let state = chunk(body).await;
            // In one chunk: the new object, then the one that nobody has encoded before.
            assert!(state.starts_with(&first) && state.len() > first.len());
        }
        assert_eq!(made().await, 2, "{accept}");

        let path = format!("{CONFIG_MAPS}/a");
        let patched = fixture.patch(&path, "merge-patch+json", json!({"data": {"k": "w"}}));
        assert_eq!(patched.await.head.status, StatusCode::OK);
        for body in live.iter_mut().chain(&mut replay).chain(&mut initial) {
            chunk(body).await;
        }
        assert_eq!(made().await, 3, "{accept}");
    }
}

#[tokio::test]
async fn a_burst_is_joined_into_chunks_of_bounded_size() {
    const RECORD_BYTES: usize = 16 * 1024;
    let fixture = Fixture::start(true).await;
    let mut watch = watches(&fixture, "application/json", "resourceVersion=0", 1).await;
    // One that is larger than a chunk stands between small ones.
    for number in 0..30 {
        let large = if number == 15 { 20_000 } else { 2_000 };
        let data = json!({"k": "x".repeat(large)});
        fixture.config_map(&format!("c{number:02}"), data).await;
    }
    // Events that come while it reads would be chunks of their own.
    let behind = eventually(DEADLINE, "all events wait for the watch", async || {
        let state = fixture.get("/debug/ui/state").await.json();
        let mut types = state["types"].as_array().expect("types").iter();
        let config_maps = types.find(|it| it["type"] == "configmaps");
        let behind = config_maps.and_then(|it| it["watchers"]["behindMax"].as_u64());
        (behind >= Some(30)).then_some(()).ok_or(behind)
    });
    behind.await;
    let mut text = Vec::new();
    let mut chunks = 0;
    while text.iter().filter(|byte| **byte == b'\n').count() < 30 {
        let chunk = chunk(&mut watch[0]).await;
        let lines = chunk.iter().filter(|byte| **byte == b'\n').count();
        assert!(
            chunk.len() <= RECORD_BYTES || lines == 1,
            "{} bytes",
            chunk.len()
        );
        text.extend_from_slice(&chunk);
        chunks += 1;
    }
    let names: Vec<Value> = serde_json::Deserializer::from_slice(&text)
        .into_iter::<Value>()
        .map(|event| event.expect("an event")["object"]["metadata"]["name"].clone())
        .collect();
    let expected: Vec<String> = (0..30).map(|number| format!("c{number:02}")).collect();
    assert_eq!(names, expected);
    assert!(chunks <= 9, "{chunks} chunks");
}

#[tokio::test]
async fn lists_have_the_length_they_tell_in_every_form() {
    // With room for all encodings, for some, and for none.
    for encodings_bytes_max in [1 << 20, 30_000, 0] {
        let fixture = Fixture::with_encodings(encodings_bytes_max).await;
        for number in 0..20 {
            // Some are larger than a chunk.
            let large = if number % 5 == 4 { 40_000 } else { 1_000 };
            let data = json!({"k": "x".repeat(large)});
            fixture.config_map(&format!("c{number:02}"), data).await;
        }
        let all = fixture.get(CONFIG_MAPS).await.json();
        let partial = format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
        for accept in ["application/json", METADATA, PROTOBUF, &partial] {
            for _ in 0..2 {
                let request = in_protobuf("GET", CONFIG_MAPS, accept, Vec::new());
                let response = fixture.send(request).await;
                let told = response.body().size_hint().exact().expect("a length");
                let body = response.into_body().collect().await.expect("a body");
                let body = body.to_bytes();
                assert_eq!(body.len() as u64, told, "{accept}");
                let list = if accept.starts_with(PROTOBUF) {
                    codec::decode(&body, ("", "")).expect("a list")
                } else {
                    serde_json::from_slice(&body).expect("a list")
                };
                let metadata = |list: &Value| -> Vec<Value> {
                    let items = list["items"].as_array().expect("items");
                    items.iter().map(|item| item["metadata"].clone()).collect()
                };
                assert_eq!(metadata(&list), metadata(&all), "{accept}");
                let bytes = fixture.metric("ringwatch_encoding_cache_bytes").await;
                assert!(bytes <= encodings_bytes_max as u64);
            }
        }
        if encodings_bytes_max == 1 << 20 {
            let made = fixture.metric("ringwatch_encoding_cache_made_total").await;
            assert_eq!(made, 3 * 20, "each item once a form");
        }
    }
}

#[tokio::test]
async fn long_lists_for_people_are_written_while_they_are_sent() {
    let fixture = Fixture::start(true).await;
    for number in 0..20 {
        let data = json!({"k": "x".repeat(10_000), "number": number.to_string()});
        fixture.config_map(&format!("c{number:02}"), data).await;
    }
    let all = fixture.get(CONFIG_MAPS).await.json();
    let path = format!("{CONFIG_MAPS}?pretty=true");
    let pretty = fixture.send(request("GET", &path, Bytes::new())).await;
    let yaml = in_protobuf("GET", CONFIG_MAPS, "application/yaml", Vec::new());
    let yaml = fixture.send(yaml).await;
    for (response, is_yaml) in [(pretty, false), (yaml, true)] {
        // The whole of it is in memory only when a length is told.
        let hint = response.body().size_hint();
        assert_eq!(hint.exact(), None, "yaml: {is_yaml}");
        assert!(hint.lower() < 160_000, "{hint:?}");
        let body = response.into_body().collect().await.expect("a body");
        let body = body.to_bytes();
        let list: Value = if is_yaml {
            serde_saphyr::from_slice(&body).expect("a list in YAML")
        } else {
            serde_json::from_slice(&body).expect("a list")
        };
        assert_eq!(list, all);
    }
    let none = format!("{CONFIG_MAPS}?labelSelector=none");
    let none = in_protobuf("GET", &none, "application/yaml", Vec::new());
    let none = fixture.ask(none).await.text();
    assert!(
        none.contains("\nitems: []\nkind: ConfigMapList\n"),
        "{none}"
    );
}

#[tokio::test]
async fn what_two_versions_serve_is_encoded_for_each() {
    const OLD: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    const NEW: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let fixture = Fixture::start(true).await;
    let scaler = json!({"metadata": {"name": "s"}, "spec": {"maxReplicas": 3,
        "targetCPUUtilizationPercentage": 60,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let created = fixture.post(OLD, scaler).await;
    created.has_created();
    for _ in 0..2 {
        for (path, member) in [(OLD, "targetCPUUtilizationPercentage"), (NEW, "metrics")] {
            let list = fixture.get(path).await.json();
            assert!(!list["items"][0]["spec"][member].is_null(), "{list}");
            let path = format!("{path}?watch=1&resourceVersion=0&timeoutSeconds=60");
            let response = fixture.send(request("GET", &path, Bytes::new())).await;
            let events = frames(response, |events| !events.is_empty()).await;
            let spec = &events[0]["object"]["spec"];
            assert!(!spec[member].is_null(), "{spec}");
        }
    }
    // A frame and an item for each version.
    let made = fixture.metric("ringwatch_encoding_cache_made_total").await;
    assert_eq!(made, 4);
}
