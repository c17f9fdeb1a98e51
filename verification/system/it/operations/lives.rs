//! Objects of every kind are created, read, listed, watched, changed in all ways and deleted.

use futures::AsyncBufReadExt;
use futures::future::join_all;
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use super::kinds::{Kind, kinds};
use super::{Cluster, STRATEGIC};
use crate::support::requests;

const NAMESPACE: &str = "lives";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// The number of objects of a kind beside the first; these get their names from the server.
const OTHERS: usize = 2;

#[tokio::test]
async fn objects_of_every_kind_live_and_go() {
    let cluster = Cluster::start().await;
    cluster.namespace(NAMESPACE).await;
    let kinds = kinds();
    let lives = kinds.iter().map(|kind| Life::new(&cluster, kind).run());
    join_all(lives).await;
}

/// The life of some objects of a kind.
struct Life<'a> {
    cluster: &'a Cluster,
    kind: &'a Kind,
    /// The path of all objects of the kind, and the path of those in the namespace.
    everywhere: String,
    here: String,
    /// The path of the first object.
    own: String,
    /// The same as `here`, of the objects of this life alone.
    chosen: String,
}

impl<'a> Life<'a> {
    fn new(cluster: &'a Cluster, kind: &'a Kind) -> Self {
        let (version, plural) = (kind.version, kind.plural);
        let everywhere = format!("/{version}/{plural}");
        let here = if kind.namespaced {
            format!("/{version}/namespaces/{NAMESPACE}/{plural}")
        } else {
            everywhere.clone()
        };
        let own = format!("{here}/{}", kind.first);
        let chosen = format!("{here}?labelSelector=of%3D{}", kind.first);
        Self {
            cluster,
            kind,
            everywhere,
            here,
            own,
            chosen,
        }
    }

    async fn run(self) {
        self.is_told_of().await;
        let version = self.begins().await;
        let count = self.count().await;
        let (events, ()) = tokio::join!(self.watch(&version, count), async {
            self.changes().await;
            self.changes_in_parts().await;
            self.ends().await;
        });
        self.was_seen(&events);
    }

    async fn is_told_of(&self) {
        let told = self.cluster.get(&format!("/{}", self.kind.version)).await;
        let told = told.is(200, self.kind.version);
        let resources = told["resources"].as_array().expect("resources");
        let parts = self.kind.parts.iter().map(|part| format!("/{}", part.name));
        for part in std::iter::once(String::new()).chain(parts) {
            let name = format!("{}{part}", self.kind.plural);
            assert!(resources.iter().any(|it| it["name"] == name), "{name}");
        }
    }

    /// Gives the version of the list of all objects.
    async fn begins(&self) -> String {
        let mut object = self.kind.content.clone();
        let labels = json!({"of": self.kind.first});
        object["metadata"] = json!({"name": self.kind.first, "labels": labels});
        let first = self
            .cluster
            .post(&self.here, &object)
            .await
            .is(201, &self.own);
        object["metadata"] = json!({"generateName": "other-", "labels": labels});
        let others = if self.kind.alone { 0 } else { OTHERS };
        for _ in 0..others {
            let other = self.cluster.post(&self.here, &object).await;
            let other = other.is(201, &self.here);
            let name = other["metadata"]["name"].as_str().expect("a name");
            assert!(
                name.starts_with("other-") && name.len() > "other-".len(),
                "{name}"
            );
        }
        let read = self.cluster.get(&self.own).await.is(200, &self.own);
        assert_eq!(read, first, "{}", self.own);
        let list = self.cluster.get(&self.chosen).await;
        let list = list.is(200, &self.here);
        let all = format!("{}?labelSelector=of%3D{}", self.everywhere, self.kind.first);
        let everywhere = self.cluster.get(&all).await;
        let everywhere = everywhere.is(200, &self.everywhere);
        for list in [&list, &everywhere] {
            let items = list["items"].as_array().expect("items");
            assert_eq!(items.len(), 1 + others, "{}", self.here);
        }
        let version = list["metadata"]["resourceVersion"].as_str();
        version.expect("a version").to_owned()
    }

    async fn count(&self) -> usize {
        let list = self.cluster.get(&self.chosen).await;
        let items = list.is(200, &self.here)["items"].take();
        items.as_array().map_or(0, Vec::len)
    }

    async fn changes(&self) {
        let (cluster, own) = (self.cluster, &self.own);
        let annotated = |name: &str| json!({"metadata": {"annotations": {name: "yes"}}});
        cluster.patch(own, &annotated("merged")).await.is(200, own);
        let strategic = cluster
            .patch_as(own, STRATEGIC, &annotated("strategic"))
            .await;
        strategic.is(200, own);
        let added = json!([{"op": "add", "path": "/metadata/annotations/added", "value": "yes"}]);
        let read = cluster.patch_as(own, JSON_PATCH, &added).await.is(200, own);
        let mut applied = annotated("applied");
        applied["apiVersion"] = read["apiVersion"].clone();
        applied["kind"] = read["kind"].clone();
        let by = format!("{own}?fieldManager=tests");
        let applied = cluster.patch_as(&by, APPLY, &applied).await.is(200, own);
        let mut updated = applied.clone();
        updated["metadata"]["annotations"]["updated"] = "yes".into();
        let put = cluster.put(own, &updated).await.is(200, own);
        for name in ["merged", "strategic", "added", "applied", "updated"] {
            assert_eq!(put["metadata"]["annotations"][name], "yes", "{own} {name}");
        }
        // What somebody else has changed since is not overwritten.
        let stale = cluster.put(own, &updated).await;
        assert_eq!(stale.code, 409, "{own}: {}", stale.body);
        let spec = put.get("spec");
        assert_eq!(spec, applied.get("spec"), "{own}: only metadata changed");
    }

    async fn changes_in_parts(&self) {
        for part in self.kind.parts {
            let path = format!("{}/{}", self.own, part.name);
            let mut read = self.cluster.get(&path).await.is(200, &path);
            let patched = json!({"metadata": {"annotations": {"patched-part": "yes"}}});
            let patched = self.cluster.patch(&path, &patched).await.is(200, &path);
            read["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"].clone();
            read["metadata"]["annotations"]["updated-part"] = "yes".into();
            let updated = self.cluster.put(&path, &read).await.is(200, &path);
            let kept = part.annotates.then_some("yes");
            let noted = |object: &Value, name: &str| {
                let noted = object["metadata"]["annotations"][name].as_str();
                noted.map(str::to_owned)
            };
            assert_eq!(noted(&patched, "patched-part").as_deref(), kept, "{path}");
            assert_eq!(noted(&updated, "updated-part").as_deref(), kept, "{path}");
            assert_eq!(updated.get("spec"), read.get("spec"), "{path}");
        }
    }

    async fn ends(&self) {
        self.cluster.delete(&self.own).await.is(200, &self.own);
        if self.kind.waits {
            let waiting = self.cluster.get(&self.own).await.is(200, &self.own);
            assert!(
                waiting["metadata"]["deletionTimestamp"].is_string(),
                "{}",
                self.own
            );
            self.let_go(&self.own).await;
        }
        assert_eq!(self.cluster.get(&self.own).await.code, 404, "{}", self.own);
        let chosen = &self.chosen;
        self.cluster.delete(chosen).await.is(200, chosen);
        let left = self.cluster.get(chosen).await.is(200, chosen);
        for object in left["items"].as_array().expect("items") {
            assert!(self.kind.waits, "{}: {object}", self.here);
            let name = object["metadata"]["name"].as_str().expect("a name");
            self.let_go(&format!("{}/{name}", self.here)).await;
        }
        assert_eq!(self.count().await, 0, "{}", self.here);
    }

    /// The part of the controller for which a deleted object waits.
    async fn let_go(&self, path: &str) {
        let none = json!({"metadata": {"finalizers": null}});
        self.cluster.patch(path, &none).await.is(200, path);
    }

    /// Watches from a version on until so many objects are gone.
    async fn watch(&self, version: &str, count: usize) -> Vec<Value> {
        let path = format!("{}&watch=true&resourceVersion={version}", self.chosen);
        let reading = async {
            let stream = self
                .cluster
                .client
                .request_stream(requests::get(&path))
                .await;
            let mut lines = std::pin::pin!(stream.expect("a watch").lines());
            let (mut events, mut gone) = (Vec::new(), 0);
            while gone < count {
                let line = futures::StreamExt::next(&mut lines).await;
                let line = line.expect("an event").expect("a line");
                let event: Value = serde_json::from_str(&line).expect("an event");
                gone += usize::from(event["type"] == "DELETED");
                events.push(event);
            }
            events
        };
        let read = tokio::time::timeout(DEADLINE, reading).await;
        read.unwrap_or_else(|_| panic!("{}: the watch did not tell the end", self.here))
    }

    /// The watch has told every change, in order.
    fn was_seen(&self, events: &[Value]) {
        let name = self.kind.first;
        let version = |event: &Value| {
            let version = event["object"]["metadata"]["resourceVersion"].as_str();
            version
                .and_then(|it| it.parse::<u64>().ok())
                .expect("a version")
        };
        let versions: Vec<u64> = events.iter().map(version).collect();
        assert!(versions.is_sorted(), "{}: {versions:?}", self.here);
        let own: Vec<&str> = events
            .iter()
            .filter(|event| event["object"]["metadata"]["name"] == name)
            .map(|event| event["type"].as_str().expect("a type"))
            .collect();
        let (last, before) = own.split_last().expect("events");
        assert_eq!(*last, "DELETED", "{}", self.here);
        assert!(
            before.iter().all(|kind| *kind == "MODIFIED"),
            "{}: {own:?}",
            self.here
        );
        // Five changes of the object itself.
        assert!(before.len() >= 5, "{}: {own:?}", self.here);
    }
}
