//! Objects of a definition with the strategy None, after its storage version moved on.

use http::Method;

use super::*;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ALPHA: &str = "/apis/example.com/v1alpha1/namespaces/default/things";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn definition() -> Value {
    let version = |name: &str, is_stored: bool| {
        let text = json!({"type": "string"});
        let spec = json!({"type": "object", "properties": {"s": text, name: text,
            "replicas": {"type": "integer"}}});
        json!({"name": name, "served": true, "storage": is_stored,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "additionalPrinterColumns": [{"name": "S", "type": "string", "jsonPath": ".spec.s"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec,
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}}})
    };
    json!({"metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1alpha1", true), version("v1", false)]}})
}

/// A server with one object of each of these names, written while v1alpha1 was the storage version, which v1 is now.
async fn moved_on(cached: bool, names: &[&str]) -> Fixture {
    let fixture = Fixture::start(cached).await;
    let created = fixture.post(DEFINITIONS, definition()).await;
    assert_eq!(created.head.status, 201, "{}", created.text());
    fixture.until_served(ALPHA).await;
    for name in names {
        let thing = json!({"apiVersion": "example.com/v1alpha1", "kind": "Thing",
            "metadata": {"name": name}, "spec": {"s": "x", "v1alpha1": "old", "replicas": 1}});
        let created = fixture.post(ALPHA, thing).await;
        assert_eq!(created.head.status, 201, "{}", created.text());
    }
    let moved = json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]);
    let before = fixture.storage_hash().await;
    let path = format!("{DEFINITIONS}/things.example.com");
    let moved = fixture.patch(&path, "json-patch+json", moved).await;
    assert_eq!(moved.head.status, 200, "{}", moved.text());
    eventually(DEADLINE, "the storage version moves on", async || {
        fixture.storage_hash().await != before
    })
    .await;
    fixture
}

impl Fixture {
    async fn storage_hash(&self) -> Value {
        let resources = self.get("/apis/example.com/v1").await.json();
        resources["resources"][0]["storageVersionHash"].clone()
    }
}

#[tokio::test]
async fn every_read_gives_the_version_that_is_asked_for() {
    for cached in [true, false] {
        let fixture = moved_on(cached, &["a", "b"]).await;
        for (path, version, own) in [(THINGS, "v1", None), (ALPHA, "v1alpha1", Some("old"))] {
            let api_version = format!("example.com/{version}");
            let a = fixture.get(&format!("{path}/a")).await.json();
            assert_eq!(a["apiVersion"], api_version);
            assert_eq!(
                a["spec"]["v1alpha1"].as_str(),
                own,
                "what its schema lacks is pruned"
            );
            let status = fixture.get(&format!("{path}/a/status")).await.json();
            assert_eq!(status["apiVersion"], api_version);
            for query in ["", "?resourceVersion=0", "?limit=1", "?labelSelector=!none"] {
                let list = fixture.get(&format!("{path}{query}")).await.json();
                assert_eq!(list["apiVersion"], api_version);
                let items = list["items"].as_array().expect("items");
                assert_eq!(
                    items.len(),
                    if query == "?limit=1" { 1 } else { 2 },
                    "{query}"
                );
                assert!(
                    items.iter().all(|it| it["apiVersion"] == api_version),
                    "{list}"
                );
                let token = list["metadata"]["continue"].as_str().unwrap_or_default();
                if !token.is_empty() {
                    let next = fixture
                        .get(&format!("{path}?continue={token}"))
                        .await
                        .json();
                    assert_eq!(next["items"][0]["apiVersion"], api_version);
                }
            }
            let yaml = fixture.accepting(path, "application/yaml").await.text();
            // Managed fields tell the version in which they were written, further to the right.
            let mut items = yaml.lines().filter(|it| it.starts_with("- apiVersion: "));
            assert!(items.all(|it| it.ends_with(&api_version)), "{yaml}");
            let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
            let table = fixture
                .accepting(&format!("{path}?includeObject=Object"), table)
                .await;
            let row = &table.json()["rows"][0];
            assert_eq!(row["cells"][1], "x");
            assert_eq!(row["object"]["apiVersion"], api_version);
            let watch = request("GET", &format!("{path}?watch=1"), Bytes::new());
            let events = frames(fixture.send(watch).await, |seen| seen.len() == 2).await;
            assert!(
                events
                    .iter()
                    .all(|it| it["object"]["apiVersion"] == api_version)
            );
        }
    }
}

#[tokio::test]
async fn every_write_takes_an_object_of_the_old_storage_version() {
    let names = [
        "merge", "json", "apply", "put", "status", "scale", "dry", "deleted",
    ];
    let fixture = moved_on(true, &names).await;
    let list = fixture.get(THINGS).await.json();
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let path = format!("{THINGS}?watch=1&resourceVersion={version}");
    let watch = fixture.send(request("GET", &path, Bytes::new())).await;
    let patches = [
        ("merge", "merge-patch+json", json!({})),
        (
            "json",
            "json-patch+json",
            json!([{"op": "add", "path": "/spec/s", "value": "y"}]),
        ),
        (
            "apply?fieldManager=me",
            "apply-patch+yaml",
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"v1": "new"}}),
        ),
        (
            "status/status",
            "merge-patch+json",
            json!({"status": {"replicas": 1}}),
        ),
        (
            "dry?dryRun=All",
            "merge-patch+json",
            json!({"spec": {"s": "y"}}),
        ),
    ];
    for (name, kind, patch) in patches {
        let patched = fixture
            .patch(&format!("{THINGS}/{name}"), kind, patch)
            .await;
        assert_eq!(patched.head.status, 200, "{name}: {}", patched.text());
        let patched = patched.json();
        assert_eq!(patched["apiVersion"], "example.com/v1", "{patched}");
        assert!(patched["spec"].get("v1alpha1").is_none(), "{patched}");
    }
    let path = format!("{THINGS}/scale/scale");
    let scaled = json!({"spec": {"replicas": 3}});
    let scaled = fixture.patch(&path, "merge-patch+json", scaled).await;
    assert_eq!(scaled.json()["spec"]["replicas"], 3, "{}", scaled.text());
    let path = format!("{THINGS}/put");
    let read = fixture.get(&path).await;
    let put = request(Method::PUT.as_str(), &path, read.body.clone());
    let put = fixture.ask(put).await;
    assert_eq!(
        put.head.status,
        200,
        "what was read is written back: {}",
        put.text()
    );
    assert_eq!(put.json()["apiVersion"], "example.com/v1");
    let path = format!("{THINGS}/deleted");
    let deleted = fixture.ask(request("DELETE", &path, Bytes::new())).await;
    assert_eq!(deleted.head.status, 200, "{}", deleted.text());

    // All but the dry run have written, the empty patch and the PUT of what was read as well.
    let events = frames(watch, |seen| seen.len() == names.len() - 1).await;
    let versions = events.iter().map(|it| it["object"]["apiVersion"].as_str());
    assert!(
        versions.into_iter().all(|it| it == Some("example.com/v1")),
        "{events:?}"
    );
    assert_eq!(events.last().expect("an event")["type"], "DELETED");
}
