//! Lists and watches of shards, with the feature gate ShardedListAndWatch on and off.

use std::collections::BTreeSet;

use ringwatch::meta::shard_hash;

use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Fixture {
    /// A server with or without watch caches whose feature gate is on.
    async fn with_shards(cached: bool) -> Self {
        let server = InProcessServer::builder()
            .flag(format!("--watch-cache={cached}"))
            .flag("--feature-gates=ShardedListAndWatch=true");
        Self {
            server: server.start().await.expect("a server"),
        }
    }
}

/// A half of the hashes of a field.
fn half(field: &str, upper: bool) -> String {
    let (start, end) = match upper {
        false => ("0x0000000000000000", "0x8000000000000000"),
        true => ("0x8000000000000000", "0x10000000000000000"),
    };
    format!("shardRange(object.metadata.{field}, '{start}', '{end}')")
}

/// Returns a selector as a parameter.
fn parameter(selector: &str) -> String {
    let mut text = String::from("shardSelector=");
    for byte in selector.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// Returns true if a text lies in the upper half.
fn is_upper(text: &str) -> bool {
    shard_hash(text) >> 63 == 1
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .expect("a uid")
        .to_owned()
}

fn uids(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(uid).collect()
}

#[tokio::test]
async fn shards_are_listed_and_named() {
    for cached in [false, true] {
        let fixture = Fixture::with_shards(cached).await;
        let mut created = Vec::new();
        for number in 0..24 {
            created.push(
                fixture
                    .config_map(&format!("a{number:02}"), json!({}))
                    .await,
            );
        }
        for upper in [false, true] {
            let selector = half("uid", upper);
            let path = format!("{CONFIG_MAPS}?{}", parameter(&selector));
            let list = fixture.get(&path).await.json();
            let mine = created.iter().map(uid).filter(|it| is_upper(it) == upper);
            let mine: BTreeSet<_> = mine.collect();
            assert_eq!(uids(&list), mine, "{cached}");
            assert_eq!(list["metadata"]["shardInfo"], json!({"selector": selector}));
            let list = fixture.accepting(&path, PROTOBUF).await;
            let list = codec::decode(&list.body, ("", "")).expect("a list");
            assert_eq!(uids(&list), mine);
            assert_eq!(list["metadata"]["shardInfo"], json!({"selector": selector}));
            // Of other forms kube-apiserver copies the metadata one by one.
            for form in ["Table", "PartialObjectMetadataList"] {
                let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
                let list = fixture.accepting(&path, &accept).await.json();
                assert_eq!(list["kind"], form);
                assert!(list["metadata"].get("shardInfo").is_none(), "{list}");
                let rows = list["rows"].as_array().or_else(|| list["items"].as_array());
                assert_eq!(rows.map(Vec::len), Some(mine.len()));
            }
            let mut paged = BTreeSet::new();
            let mut next = format!("{path}&limit=3");
            loop {
                let page = fixture.get(&next).await.json();
                assert!(page["items"].as_array().is_some_and(|it| it.len() <= 3));
                assert_eq!(page["metadata"]["shardInfo"], json!({"selector": selector}));
                paged.extend(uids(&page));
                let Some(token) = page["metadata"]["continue"].as_str() else {
                    break;
                };
                next = format!("{path}&limit=3&continue={token}");
            }
            assert_eq!(paged, mine);
        }
        let whole = fixture.get(CONFIG_MAPS).await.json();
        assert!(whole["metadata"].get("shardInfo").is_none());
        let version = whole["metadata"]["resourceVersion"]
            .as_str()
            .expect("a version");
        fixture
            .ask(request(
                "DELETE",
                &format!("{CONFIG_MAPS}/a00"),
                Bytes::new(),
            ))
            .await;
        let both = format!("{} || {}", half("uid", true), half("uid", false));
        let exact = format!("resourceVersion={version}&resourceVersionMatch=Exact");
        let list = fixture
            .get(&format!("{CONFIG_MAPS}?{exact}&{}", parameter(&both)))
            .await
            .json();
        assert_eq!(uids(&list).len(), 24, "{cached}");
        assert_eq!(list["metadata"]["shardInfo"]["selector"], both);
    }
}

#[tokio::test]
async fn shards_are_watched() {
    for cached in [false, true] {
        let fixture = Fixture::with_shards(cached).await;
        let first = fixture.config_map("first", json!({})).await;
        let upper = is_upper(&uid(&first));
        let watch = async |upper| {
            let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                         &allowWatchBookmarks=true";
            let path = format!("{CONFIG_MAPS}?{query}&{}", parameter(&half("uid", upper)));
            fixture.send(request("GET", &path, Bytes::new())).await
        };
        let (mine, other) = (watch(upper).await, watch(!upper).await);
        let path = format!("{CONFIG_MAPS}/first");
        let gone = fixture.ask(request("DELETE", &path, Bytes::new())).await;
        assert_eq!(gone.head.status, 200);
        let kinds = |frames: Vec<Value>| -> Vec<String> {
            let kinds = frames
                .iter()
                .map(|it| it["type"].as_str().expect("a type").to_owned());
            kinds.collect()
        };
        let seen = |frames: &[Value]| frames.len() == 3;
        assert_eq!(
            kinds(frames(mine, seen).await),
            ["ADDED", "BOOKMARK", "DELETED"]
        );
        // The first event that the other watch tells is of an object of its own, so it has left out the deletion.
        for number in 0.. {
            let created = fixture.config_map(&format!("a{number}"), json!({})).await;
            if is_upper(&uid(&created)) != upper {
                break;
            }
        }
        let is_event = |it: &Value| it["type"] != "BOOKMARK";
        let told = frames(other, |frames| frames.iter().any(is_event)).await;
        let told: Vec<Value> = told.into_iter().filter(is_event).collect();
        assert_eq!(told[0]["type"], "ADDED", "{cached} {told:?}");
        let is_its_own = is_upper(&uid(&told[0]["object"])) != upper;
        assert!(is_its_own, "{cached} {told:?}");
    }
}

#[tokio::test]
async fn the_metrics_count_watches_of_shards() {
    let fixture = Fixture::with_shards(true).await;
    let first = fixture.config_map("first", json!({})).await;
    let other = half("uid", !is_upper(&uid(&first)));
    let path = format!(
        "{CONFIG_MAPS}?watch=1&resourceVersion=0&{}",
        parameter(&other)
    );
    let watch = fixture.send(request("GET", &path, Bytes::new())).await;
    let shown = async |family: &str, is_it: fn(u64) -> bool| {
        let name = format!("{family}{{group=\"\",resource=\"configmaps\"}}");
        eventually(DEADLINE, family, async || {
            let value = fixture.metric(&name).await;
            is_it(value).then_some(()).ok_or(value)
        })
        .await;
    };
    shown("apiserver_watch_shards_total", |it| it == 1).await;
    let path = format!("{CONFIG_MAPS}/first");
    fixture.ask(request("DELETE", &path, Bytes::new())).await;
    // The cache may have sent the creation late, to this watch as well.
    shown("apiserver_watch_filtered_events_total", |it| it > 0).await;
    drop(watch);
    shown("apiserver_watch_shards_total", |it| it == 0).await;
}

#[tokio::test]
async fn namespaces_are_in_one_shard_each() {
    let fixture = Fixture::with_shards(true).await;
    let mut namespaces = Vec::new();
    for number in 0..8 {
        let name = format!("shard-ns-{number}");
        let namespace = json!({"metadata": {"name": name}});
        assert_eq!(
            fixture
                .post("/api/v1/namespaces", namespace)
                .await
                .head
                .status,
            201
        );
        let path = format!("/api/v1/namespaces/{name}/configmaps");
        let made = fixture
            .post(&path, json!({"metadata": {"name": "test"}}))
            .await;
        assert_eq!(made.head.status, 201);
        namespaces.push(name);
    }
    for upper in [false, true] {
        let query = parameter(&half("namespace", upper));
        let path = format!("/api/v1/configmaps?{query}&fieldSelector=metadata.name%3Dtest");
        let list = fixture.get(&path).await.json();
        let items = list["items"].as_array().expect("items");
        let found = items
            .iter()
            .map(|it| it["metadata"]["namespace"].as_str().expect("a name"));
        let mine = namespaces
            .iter()
            .map(String::as_str)
            .filter(|it| is_upper(it) == upper);
        assert_eq!(found.collect::<Vec<_>>(), mine.collect::<Vec<_>>());
    }
}

/// Lists of custom resources have no place for the selector in kube-apiserver.
#[tokio::test]
async fn custom_resources_have_shards_that_are_not_named() {
    let fixture = Fixture::with_shards(true).await;
    let definition = json!({"metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    assert_eq!(fixture.post(DEFINITIONS, definition).await.head.status, 201);
    let foos = "/apis/example.com/v1/foos";
    let foo = json!({"kind": "Foo", "apiVersion": "example.com/v1", "metadata": {"name": "a"}});
    fixture.until_served(foos).await;
    let made = fixture.post(foos, foo).await;
    assert_eq!(made.head.status, 201, "{}", made.text());
    let made = made.json();
    for upper in [false, true] {
        let list = fixture
            .get(&format!("{foos}?{}", parameter(&half("uid", upper))))
            .await
            .json();
        assert_eq!(!uids(&list).is_empty(), is_upper(&uid(&made)) == upper);
        assert!(list["metadata"].get("shardInfo").is_none(), "{list}");
    }
}

#[tokio::test]
async fn a_shard_is_deleted_alone() {
    let fixture = Fixture::with_shards(true).await;
    let mut upper = BTreeSet::new();
    for number in 0..12 {
        let made = fixture
            .config_map(&format!("a{number:02}"), json!({}))
            .await;
        upper.extend(Some(uid(&made)).filter(|it| is_upper(it)));
    }
    let path = format!("{CONFIG_MAPS}?{}", parameter(&half("uid", false)));
    let gone = fixture.ask(request("DELETE", &path, Bytes::new())).await;
    assert_eq!(gone.head.status, 200);
    let gone = gone.json();
    assert_eq!(
        gone["metadata"]["shardInfo"]["selector"],
        half("uid", false)
    );
    assert!(uids(&gone).is_disjoint(&upper));
    assert_eq!(uids(&fixture.get(CONFIG_MAPS).await.json()), upper);
}

/// kube-apiserver does not translate the error, which its stores return: a 500 without a reason.
#[tokio::test]
async fn bad_shard_selectors_are_refused() {
    let fixture = Fixture::with_shards(true).await;
    let mixed = format!("{} || {}", half("uid", false), half("namespace", true));
    for (selector, message) in [
        (
            " ",
            "invalid shard selector: empty shard selector is not allowed; omit the parameter for unfiltered lists",
        ),
        (
            "shardRange(object.metadata.name, '0x0', '0x8')",
            "invalid shard selector: unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
        ),
        (
            mixed.as_str(),
            "invalid shard selector: all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
        ),
    ] {
        for (method, watch) in [("GET", ""), ("GET", "watch=1&"), ("DELETE", "")] {
            // The version is looked at later.
            let path = format!(
                "{CONFIG_MAPS}?{watch}resourceVersion=x&{}",
                parameter(selector)
            );
            let answer = fixture.ask(request(method, &path, Bytes::new())).await;
            assert_eq!(answer.failure(), (500, message.to_owned()), "{path}");
            assert!(answer.json().get("reason").is_none());
        }
    }
    let path = format!(
        "{CONFIG_MAPS}?fieldSelector=spec.x%3Dy&{}",
        parameter("bogus")
    );
    assert_eq!(fixture.get(&path).await.head.status, 400);
    let empty = fixture.get(&format!("{CONFIG_MAPS}?shardSelector=")).await;
    assert_eq!(empty.head.status, 200);
    assert!(empty.json()["metadata"].get("shardInfo").is_none());
}

/// kube-apiserver's store reads shard selectors and versions, when all else of a deletion has been read.
#[tokio::test]
async fn a_bad_body_of_a_deletion_is_told_before_a_bad_shard_or_version() {
    let fixture = Fixture::with_shards(true).await;
    fixture.config_map("a", json!({})).await;
    let policy = r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"x"}"#;
    for query in ["shardSelector=x", "resourceVersion=x"] {
        for (body, rest, code) in [("{", "", 400), (policy, "", 422), ("", "&dryRun=x", 422)] {
            let path = format!("{CONFIG_MAPS}?{query}{rest}");
            let answer = fixture.ask(request("DELETE", &path, body.into())).await;
            let (found, message) = answer.failure();
            assert_eq!(found, code, "{path} {body}: {message}");
            let path = format!("{CONFIG_MAPS}?{query}{rest}&fieldSelector=spec.x%3Dy");
            let answer = fixture.ask(request("DELETE", &path, body.into())).await;
            let (_, message) = answer.failure();
            assert_eq!(
                message,
                "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            );
        }
    }
}

/// The statuses of components are not stored, and kube-apiserver looks neither at shards nor at versions of them.
#[tokio::test]
async fn component_statuses_have_no_shards() {
    let fixture = Fixture::with_shards(true).await;
    let (none, all) = (half("uid", false), half("uid", true));
    for query in [
        parameter(&none),
        parameter(&all),
        parameter("x"),
        "resourceVersion=x".to_owned(),
    ] {
        let path = format!("/api/v1/componentstatuses?{query}");
        let answer = fixture.get(&path).await;
        assert_eq!(answer.head.status, 200, "{path}: {}", answer.text());
        let list = answer.json();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
        assert!(list["metadata"].get("shardInfo").is_none(), "{list}");
    }
}

#[tokio::test]
async fn without_the_feature_gate_shard_selectors_are_ignored() {
    let fixture = Fixture::start(true).await;
    fixture.config_map("a", json!({})).await;
    for selector in [half("uid", false), half("uid", true), "bogus(".to_owned()] {
        let path = format!("{CONFIG_MAPS}?{}", parameter(&selector));
        let list = fixture.get(&path).await;
        assert_eq!(list.head.status, 200);
        assert!(list.json()["metadata"].get("shardInfo").is_none());
        assert!(list.text().contains("\"name\":\"a\""));
        let path = format!("{path}&watch=1");
        let seen = frames(
            fixture.send(request("GET", &path, Bytes::new())).await,
            |it| !it.is_empty(),
        );
        assert!(
            seen.await
                .iter()
                .any(|it| it["object"]["metadata"]["name"] == "a")
        );
    }
    let metrics = fixture.metrics().await;
    assert!(!metrics.contains("apiserver_watch_shards_total"));
    assert!(!metrics.contains("apiserver_watch_filtered_events"));
}
