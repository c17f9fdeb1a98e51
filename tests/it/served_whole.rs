//! An etcd that kube-apiserver has filled is served whole: listed, got, watched, updated, deleted.
//!
//! The values are those of Kubernetes' test objects, byte for byte but for their metadata, which k8s-pb
//! writes: the test objects are being deleted, and have names that no object may have. What the server
//! writes over them is read back by k8s-pb.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use etcd_client::Client as EtcdClient;
use futures::AsyncBufReadExt;
use http::Request;
use k8s_pb::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_pb::apimachinery::pkg::runtime::{TypeMeta, Unknown};
use kube::{Client, Error};
use prost::Message;
use ringwatch::registry::resources::built_in;
use ringwatch::registry::{Resource, Served};
use serde_json::{Value, json};

use crate::support::etcd::Etcd;
use crate::support::server::Server;
use crate::support::testdata;

/// What the values of built-in kinds begin with.
const MAGIC: &[u8] = b"k8s\0";
/// The name of each object.
const NAME: &str = "whole";
/// A watch has told everything within this time.
const WATCH_SECONDS_MAX: u64 = 60;
/// How many kinds there are to serve, and how many of their objects may be updated: what many of them hold
/// is no value that kube-apiserver would have let in.
const KINDS_MIN: usize = 45;
const UPDATED_MIN: usize = 20;

/// An object as it lies in etcd, and as it is served.
struct Stored {
    resource: Resource,
    value: Vec<u8>,
    json: Value,
}

impl Stored {
    /// The object of a resource, if Kubernetes has a test object of its kind.
    fn of(resource: &Resource, folder: &Path) -> Option<Self> {
        let version = &resource.group_version;
        let stored_here = resource.served == Served::Store && resource.storage_version == *version;
        let group = match version.group.as_str() {
            "" => "core",
            other => other,
        };
        // Definitions of kinds and of servers are stored as JSON, in a version of their own.
        if !stored_here || matches!(group, "apiextensions.k8s.io" | "apiregistration.k8s.io") {
            return None;
        }
        let name = format!("{group}.{}.{}.pb", version.version, resource.kind);
        let bytes = fs::read(folder.join(&name)).ok()?;
        let json = fs::read(folder.join(name).with_extension("json")).expect("JSON");
        let mut json: Value = serde_json::from_slice(&json).expect("JSON");
        let unknown =
            Unknown::decode(bytes.strip_prefix(MAGIC).expect("a value")).expect("a value");
        let metadata = metadata(resource.namespaced);
        let value = value(unknown.type_meta.clone(), &metadata, rest(unknown.raw()));
        json["metadata"] = json!({"name": NAME, "uid": "u", "labels": {"app": "a"},
            "creationTimestamp": "1970-01-01T00:00:01Z"});
        if resource.namespaced {
            json["metadata"]["namespace"] = "default".into();
        }
        let resource = resource.clone();
        Some(Self {
            resource,
            value,
            json,
        })
    }

    fn key(&self) -> String {
        let prefix = &self.resource.storage_prefix;
        let namespace = if self.resource.namespaced {
            "default/"
        } else {
            ""
        };
        format!("/registry/{prefix}/{namespace}{NAME}")
    }

    /// The path of its list, or of itself.
    fn path(&self, name: &str) -> String {
        let version = &self.resource.group_version;
        let root = if version.group.is_empty() {
            "api"
        } else {
            "apis"
        };
        let namespace = if self.resource.namespaced {
            "namespaces/default/"
        } else {
            ""
        };
        let plural = &self.resource.plural;
        format!("/{root}/{version}/{namespace}{plural}{name}")
    }

    fn own_path(&self) -> String {
        self.path(&format!("/{NAME}"))
    }
}

fn metadata(namespaced: bool) -> ObjectMeta {
    let text = |text: &str| Some(text.to_owned());
    ObjectMeta {
        name: text(NAME),
        namespace: namespaced.then(|| "default".to_owned()),
        uid: text("u"),
        labels: BTreeMap::from([("app".to_owned(), "a".to_owned())])
            .into_iter()
            .collect(),
        creation_timestamp: Some(k8s_pb::apimachinery::pkg::apis::meta::v1::Time {
            seconds: Some(1),
            nanos: Some(0),
        }),
        ..ObjectMeta::default()
    }
}

/// A value with this metadata before the other fields of its message.
fn value(type_meta: Option<TypeMeta>, metadata: &ObjectMeta, rest: &[u8]) -> Vec<u8> {
    let metadata = metadata.encode_length_delimited_to_vec();
    let raw = [&[0x0a][..], &metadata, rest].concat();
    let unknown = Unknown {
        type_meta,
        raw: Some(raw),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    [MAGIC, &unknown.encode_to_vec()].concat()
}

/// A message without its first field, the metadata.
fn rest(raw: &[u8]) -> &[u8] {
    let mut rest = raw.strip_prefix(&[0x0a]).expect("metadata first");
    let length = prost::decode_length_delimiter(&mut rest).expect("a length");
    &rest[length..]
}

async fn get(client: &Client, path: &str) -> Result<Value, Error> {
    client
        .request(Request::get(path).body(Vec::new()).expect("a request"))
        .await
}

/// An object without its version, and without what the server may add beside it.
fn bare(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("resourceVersion");
    object
}

/// Reads a watch until something is deleted, and gives the types of its events.
async fn until_deleted(client: &Client, path: &str) -> Vec<String> {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    let stream = client.request_stream(request).await.expect("a watch");
    let mut lines = std::pin::pin!(stream);
    let mut types = Vec::new();
    let mut line = String::new();
    while lines.read_line(&mut line).await.expect("a line") > 0 {
        let event: Value = serde_json::from_str(&line).expect("an event");
        let kind = event["type"].as_str().expect("a type").to_owned();
        line.clear();
        types.push(kind);
        if types.last().is_some_and(|it| it == "DELETED") {
            break;
        }
    }
    types
}

#[tokio::test]
async fn what_kube_apiserver_stored_is_served_whole() {
    let (Some(folder), Some(etcd)) = (testdata(), Etcd::start("an etcd that is served whole"))
    else {
        return;
    };
    let resources = built_in();
    let all = resources.iter().filter_map(|it| Stored::of(it, &folder));
    let all: Vec<Stored> = all.collect();
    assert!(all.len() >= KINDS_MIN, "{} kinds", all.len());
    let mut raw = EtcdClient::connect([etcd.endpoint()], None)
        .await
        .expect("etcd");
    for stored in &all {
        let put = raw.put(stored.key(), stored.value.clone(), None).await;
        put.expect("a value");
    }
    let mut server = Server::start(&["--etcd-servers", &etcd.endpoint()]);
    let client = server.client().await;
    let mut updated = 0;
    for stored in &all {
        updated += usize::from(serves(&client, &mut raw, stored).await);
    }
    assert!(updated >= UPDATED_MIN, "{updated} of {} updated", all.len());
}

/// Lists, gets, watches, updates and deletes an object; tells whether it could be updated.
async fn serves(client: &Client, raw: &mut EtcdClient, stored: &Stored) -> bool {
    let what = stored.key();
    let list = get(client, &stored.path("")).await.expect(&what);
    let items = list["items"].as_array().expect(&what);
    assert!(
        items.iter().any(|it| it["metadata"]["name"] == NAME),
        "{what}"
    );
    let found = get(client, &stored.own_path()).await.expect(&what);
    assert_eq!(bare(found), stored.json, "{what}");

    let version = list["metadata"]["resourceVersion"].as_str().expect(&what);
    let selector = format!("fieldSelector=metadata.name%3D{NAME}");
    let watch = format!("?watch=true&resourceVersion={version}&{selector}");
    let watch = stored.path(&watch);
    let watching = until_deleted(client, &watch);
    let changing = change(client, raw, stored);
    let at_most = Duration::from_secs(WATCH_SECONDS_MAX);
    let both = async { futures::join!(watching, changing) };
    let (types, updated) = tokio::time::timeout(at_most, both).await.expect(&what);
    if types.last().is_some_and(|it| it == "DELETED") {
        let gone = raw.get(stored.key(), None).await.expect("etcd");
        assert_eq!(gone.count(), 0, "{what}");
    }
    if updated {
        assert_eq!(types[0], "MODIFIED", "{what}");
    }
    updated
}

async fn change(client: &Client, raw: &mut EtcdClient, stored: &Stored) -> bool {
    let what = stored.key();
    let patch = json!({"metadata": {"labels": {"seen": "yes"}}}).to_string();
    let request = Request::patch(stored.own_path())
        .header("Content-Type", "application/merge-patch+json")
        .body(patch.into_bytes());
    let patched = client.request::<Value>(request.expect("a request")).await;
    let updated = match patched {
        Ok(object) => {
            assert_eq!(
                object["metadata"]["labels"],
                json!({"app": "a", "seen": "yes"})
            );
            let found = raw.get(what.clone(), None).await.expect("etcd");
            let value = found.kvs()[0].value().strip_prefix(MAGIC).expect(&what);
            let unknown = Unknown::decode(value).expect(&what);
            let mut rest = unknown.raw().strip_prefix(&[0x0a]).expect("metadata first");
            let metadata = ObjectMeta::decode_length_delimited(&mut rest).expect(&what);
            assert_eq!(metadata.labels.get("seen").map(String::as_str), Some("yes"));
            assert_eq!(metadata.resource_version(), "", "{what}");
            true
        }
        Err(Error::Api(status)) => {
            assert_eq!(status.code, 422, "{what}: {}", status.message);
            false
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let options = json!({"gracePeriodSeconds": 0}).to_string().into_bytes();
    let request = Request::delete(stored.own_path())
        .header("Content-Type", "application/json")
        .body(options);
    let deleted = client.request::<Value>(request.expect("a request")).await;
    deleted.unwrap_or_else(|error| panic!("{what}: {error}"));
    updated
}
