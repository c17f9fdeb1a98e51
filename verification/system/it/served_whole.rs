//! An etcd that kube-apiserver has filled is served whole: listed, got, watched, updated, deleted.
//!
//! The values are those of Kubernetes' test objects, byte for byte but for their metadata, which k8s-pb
//! writes: the test objects are being deleted, and have names that no object may have. They are read as JSON
//! and, to the byte, as protobuf. What the server writes over them is read back by protoc, whole. Most of them
//! hold what no object may; so there is a second object of such a kind, which protoc writes whole.

mod valid;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etcd_client::Client as EtcdClient;
use futures::AsyncBufReadExt;
use http::Request;
use http::request::Builder;
use k8s_pb::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_pb::apimachinery::pkg::runtime::{TypeMeta, Unknown};
use kube::{Client, Error};
use prost::Message;
use ringwatch::codec;
use ringwatch_registry::{Resource, ServedBy};
use ringwatch_resources::built_in;
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use crate::codec_peer::Peer;
use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;
use crate::support::{recorded, tell_kinds_of_claims};

/// The magic bytes of the stored values of built-in kinds.
const MAGIC: &[u8] = b"k8s\0";
/// The name of each test object.
const NAME: &str = "whole";
/// The name of each valid object, but for addresses, which are names themselves.
const VALID_NAME: &str = "valid.example.com";
const ADDRESS: &str = "10.2.0.5";
/// Templates of what has the names of hosts may not have dots in their names.
const VALID_LABEL: &str = "valid";
/// The label that kube-apiserver gives to every namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The annotation that kube-apiserver gives to every daemon set.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Older versions with the same fields as v1.
const LIKE_V1: &[&str] = &["v1beta1", "v1beta2", "v1beta3"];
/// The least number of kinds that there are to serve.
const KINDS_MIN: usize = 51;

/// Kinds with a test object of which none is stored, and why.
const NOT_STORED: &[(&str, &str)] = &[
    (
        "CreateOptions DeleteOptions GetOptions ListOptions NodeProxyOptions PatchOptions PodAttachOptions \
         PodExecOptions PodLogOptions UpdateOptions",
        "options of requests",
    ),
    (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectReview SelfSubjectRulesReview \
         SubjectAccessReview TokenRequest TokenReview",
        "answered at once",
    ),
    ("Eviction Scale", "a view of other objects"),
    ("ComponentStatus", "asked for when it is read"),
    (
        "APIGroup APIGroupDiscovery Status WatchEvent",
        "a form of answers",
    ),
    ("AdmissionReview", "sent to webhooks"),
    ("RangeAllocation", "the server's own, and served by none"),
    (
        "DeploymentRollback PodStatusResult SerializedReference",
        "served by none",
    ),
    (
        "HorizontalPodAutoscaler",
        "stored as v2, of which there is no test object",
    ),
    (
        "ClusterTrustBundle DeviceTaintRule LeaseCandidate PodCertificateRequest PodGroup \
         ResourcePoolStatusRequest StorageVersion",
        "alpha or beta in 1.36, and so not served by default",
    ),
];

fn not_stored() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = NOT_STORED.iter();
    all.flat_map(|(kinds, why)| kinds.split_whitespace().map(|kind| (kind, *why)))
}

/// An object as it lies in etcd, and as it is served.
struct Stored {
    resource: Resource,
    name: &'static str,
    value: Vec<u8>,
    json: Value,
}

impl Stored {
    /// Reads the test object that Kubernetes has of a resource, if it has one.
    fn read(resource: &Resource, folder: &Path) -> Option<Self> {
        // Events of the newer group are those of the core.
        let stored_here = resource.storage_version.group == resource.group_version.group;
        if resource.served != ServedBy::Store || !stored_here {
            return None;
        }
        let path = test_object(resource, folder)?;
        let bytes = fs::read(&path).expect("protobuf");
        let unknown =
            Unknown::decode(bytes.strip_prefix(MAGIC).expect("a value")).expect("a value");
        let type_meta = TypeMeta {
            api_version: Some(resource.storage_version.to_string()),
            kind: Some(resource.kind.clone()),
        };
        let value = value(type_meta, &metadata(resource), rest(unknown.raw()));
        let json = fs::read(path.with_extension("json")).expect("JSON");
        let mut json: Value = serde_json::from_slice(&json).expect("JSON");
        if json["apiVersion"] != resource.storage_version.to_string() {
            // A field may have another name in JSON there.
            json = codec::decode(&value, ("", "")).expect("an object");
        }
        tell_kinds_of_claims(&mut json);
        json["apiVersion"] = resource.group_version.to_string().into();
        json["metadata"] = told_metadata(resource, NAME);
        settle(&mut json);
        Some(Self {
            resource: resource.clone(),
            name: NAME,
            value,
            json,
        })
    }

    /// The valid object of a resource, if there is one.
    fn valid(resource: &Resource, objects: &[Value], peer: &Peer) -> Option<Self> {
        let version = resource.group_version.to_string();
        let is_its = |it: &&Value| it["kind"] == resource.kind && it["apiVersion"] == version;
        let mut json = objects.iter().find(is_its)?.clone();
        let name = match resource.kind.as_str() {
            "IPAddress" => ADDRESS,
            "Namespace" | "Service" | "StatefulSet" | "Pod" => VALID_LABEL,
            _ => VALID_NAME,
        };
        json["metadata"] = told_metadata(resource, name);
        json["apiVersion"] = resource.storage_version.to_string().into();
        let written = peer.written(&json, &stored_version_in_files(resource), &resource.kind);
        let (value, mut json) = written.unwrap_or_else(|error| panic!("{version} {name}: {error}"));
        json["apiVersion"] = version.into();
        settle(&mut json);
        Some(Self {
            resource: resource.clone(),
            name,
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
        let name = self.name;
        format!("/registry/{prefix}/{namespace}{name}")
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
        self.path(&format!("/{}", self.name))
    }

    /// Returns true if it stays when it is deleted: a namespace goes when a controller has emptied it.
    fn stays(&self) -> bool {
        self.resource.kind == "Namespace"
    }

    /// Decodes the value in etcd with protoc, in the version that is served.
    async fn understood(&self, raw: &mut EtcdClient, peer: &Peer) -> Value {
        let what = self.key();
        let found = raw.get(what.clone(), None).await.expect("etcd");
        let value = found.kvs().first().expect(&what).value();
        let version = stored_version_in_files(&self.resource);
        let understood = peer.understood(value, &version, &self.resource.kind);
        let mut object = understood.unwrap_or_else(|error| panic!("{what}: {error}"));
        object["apiVersion"] = self.resource.group_version.to_string().into();
        object
    }
}

/// A version of a resource's group, as the files of test objects name it.
fn version_in_files(resource: &Resource, version: &str) -> String {
    let group = match resource.group_version.group.as_str() {
        "" => "core",
        other => other,
    };
    format!("{group}.{version}")
}

/// The same of the version that is stored.
fn stored_version_in_files(resource: &Resource) -> String {
    version_in_files(resource, &resource.storage_version.version)
}

/// The test object of a resource: in the version that is stored, or in an older one with the same fields.
fn test_object(resource: &Resource, folder: &Path) -> Option<PathBuf> {
    let stored = resource.storage_version.version.as_str();
    let versions = std::iter::once(stored).chain(LIKE_V1.iter().copied());
    let paths = versions.map(|version| {
        let version = version_in_files(resource, version);
        folder.join(format!("{version}.{}.pb", resource.kind))
    });
    paths.into_iter().find(|path| path.is_file())
}

/// Brings together what says the same, as kube-apiserver does when it reads an object.
fn settle(object: &mut Value) {
    for spec in [
        "/spec",
        "/template/spec",
        "/spec/template/spec",
        "/spec/jobTemplate/spec/template/spec",
    ] {
        if let Some(spec) = object
            .pointer_mut(spec)
            .filter(|it| it["serviceAccountName"].is_string())
        {
            spec["serviceAccount"] = spec["serviceAccountName"].clone();
        }
    }
    match object["kind"].as_str() {
        Some("Pod") => {
            if let Some(address) = object.pointer("/status/podIP").cloned() {
                object["status"]["podIPs"] = json!([{"ip": address}]);
            }
            for list in ["containers", "initContainers"] {
                let containers = object.pointer_mut(&format!("/spec/{list}"));
                let containers = containers.and_then(Value::as_array_mut);
                for container in containers.into_iter().flatten() {
                    let limits = container["resources"]["limits"].clone();
                    for (key, limit) in limits.as_object().into_iter().flatten() {
                        let requested = &mut container["resources"]["requests"][key];
                        if requested.is_null() {
                            *requested = limit.clone();
                        }
                    }
                }
            }
        }
        Some("Node") => {
            if let Some(range) = object.pointer("/spec/podCIDR").cloned() {
                object["spec"]["podCIDRs"] = json!([range]);
            }
        }
        Some("Secret") => {
            let members = object.as_object_mut().expect("an object");
            let texts = members.remove("stringData").unwrap_or_default();
            for (key, text) in texts.as_object().into_iter().flatten() {
                let text = STANDARD.encode(text.as_str().expect("a text"));
                object["data"][key] = text.into();
            }
        }
        Some("DaemonSet") => {
            let counted = &mut object["metadata"]["annotations"][TEMPLATE_GENERATION];
            if counted.is_null() {
                *counted = "0".into();
            }
        }
        _ => {}
    }
}

/// The labels of an object.
fn labels(resource: &Resource, name: &str) -> Vec<(String, String)> {
    let mut labels = vec![("app".to_owned(), "a".to_owned())];
    if resource.kind == "Namespace" {
        labels.push((NAME_LABEL.to_owned(), name.to_owned()));
    }
    labels
}

/// The metadata of an object, as it is served.
fn told_metadata(resource: &Resource, name: &str) -> Value {
    let labels: Value = labels(resource, name).into_iter().collect();
    let mut told = json!({"name": name, "uid": "u", "labels": labels,
        "creationTimestamp": "1970-01-01T00:00:01Z"});
    if resource.namespaced {
        told["namespace"] = "default".into();
    }
    told
}

fn metadata(resource: &Resource) -> ObjectMeta {
    let text = |text: &str| Some(text.to_owned());
    let labels = labels(resource, NAME);
    ObjectMeta {
        name: text(NAME),
        // Go writes empty texts, too.
        generate_name: text(""),
        namespace: text(if resource.namespaced { "default" } else { "" }),
        self_link: text(""),
        resource_version: text(""),
        generation: Some(0),
        uid: text("u"),
        labels: labels.into_iter().collect(),
        creation_timestamp: Some(k8s_pb::apimachinery::pkg::apis::meta::v1::Time {
            seconds: Some(1),
            nanos: Some(0),
        }),
        ..ObjectMeta::default()
    }
}

/// A value with this metadata before the other fields of its message.
fn value(type_meta: TypeMeta, metadata: &ObjectMeta, rest: &[u8]) -> Vec<u8> {
    let metadata = metadata.encode_length_delimited_to_vec();
    let raw = [&[0x0a][..], &metadata, rest].concat();
    let unknown = Unknown {
        type_meta: Some(type_meta),
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

async fn send(client: &Client, request: Builder, body: &Value) -> Result<Value, Error> {
    let body = body.to_string().into_bytes();
    client.request(request.body(body).expect("a request")).await
}

async fn get(client: &Client, path: &str) -> Result<Value, Error> {
    client.request(requests::get(path)).await
}

/// An object without its version.
fn bare(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("resourceVersion");
    object
}

/// Reads the watch of an object until it is gone or, if it stays, on its way out, and gives the events.
async fn until_deleted(client: &Client, path: &str, stays: bool) -> Vec<Value> {
    let stream = client
        .request_stream(requests::get(path))
        .await
        .expect("a watch");
    let mut lines = std::pin::pin!(stream);
    let mut events = Vec::new();
    let mut line = String::new();
    while lines.read_line(&mut line).await.expect("a line") > 0 {
        let event: Value = serde_json::from_str(&line).expect("an event");
        line.clear();
        let leaves = !event["object"]["metadata"]["deletionTimestamp"].is_null();
        let ends = event["type"] == "DELETED" || stays && leaves;
        events.push(event);
        if ends {
            break;
        }
    }
    events
}

#[test]
fn every_kind_with_a_test_object_is_stored_or_named() {
    let Some(folder) = recorded::testdata("the kinds of an etcd that is served whole") else {
        return;
    };
    let resources = built_in();
    let stored: BTreeSet<String> = resources
        .iter()
        .filter_map(|it| Stored::read(it, &folder))
        .map(|it| it.resource.kind)
        .collect();
    let named: BTreeSet<&str> = not_stored().map(|(kind, _)| kind).collect();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let kind = name.rsplit('.').next().expect("a kind");
        assert_ne!(stored.contains(kind), named.contains(kind), "{name}");
    }
}

#[tokio::test]
async fn what_kube_apiserver_stored_is_served_whole() {
    let test = "an etcd that is served whole";
    let (Some(folder), Some(peer)) = (recorded::testdata(test), Peer::find(test)) else {
        return;
    };
    let Some(etcd) = Etcd::start(test) else {
        return;
    };
    let resources = built_in();
    let all = resources.iter().filter_map(|it| Stored::read(it, &folder));
    let all: Vec<Stored> = all.collect();
    assert!(all.len() >= KINDS_MIN, "{} kinds", all.len());
    let objects = valid::valid();
    let valid = all.iter().map(|it| &it.resource);
    let valid = valid.filter_map(|it| Stored::valid(it, &objects, &peer));
    let valid: Vec<Stored> = valid.collect();
    assert_eq!(valid.len(), objects.len(), "each is of one kind");
    let mut raw = EtcdClient::connect([etcd.endpoint()], None)
        .await
        .expect("etcd");
    for stored in all.iter().chain(&valid) {
        let put = raw.put(stored.key(), stored.value.clone(), None).await;
        put.expect("a value");
    }
    // Who looks after fairness would tell flow schemas that their levels are not there.
    let endpoint = etcd.endpoint();
    let (_server, client) = Server::ready(&[
        "--etcd-servers",
        &endpoint,
        "--enable-priority-and-fairness=false",
    ])
    .await;
    let mut not_updated = BTreeSet::new();
    for stored in &all {
        if serves(&client, &mut raw, stored, &peer).await.is_some() {
            not_updated.insert(&stored.resource.kind);
        }
    }
    let mut refused = Vec::new();
    for stored in &valid {
        refused.extend(serves(&client, &mut raw, stored, &peer).await);
        not_updated.remove(&stored.resource.kind);
    }
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
    assert!(not_updated.is_empty(), "no valid one: {not_updated:?}");
}

/// Lists, gets, watches, updates and deletes an object. Gives why it could not be updated.
async fn serves(
    client: &Client,
    raw: &mut EtcdClient,
    stored: &Stored,
    peer: &Peer,
) -> Option<String> {
    let what = stored.key();
    let list = get(client, &stored.path("")).await.expect(&what);
    let mut items = list["items"].as_array().expect(&what).iter();
    let listed = items.find(|it| it["metadata"]["name"] == stored.name);
    let mut listed = bare(listed.expect(&what).clone());
    listed["kind"] = stored.json["kind"].clone();
    listed["apiVersion"] = stored.json["apiVersion"].clone();
    assert_eq!(listed, stored.json, "{what}");
    let found = get(client, &stored.own_path()).await.expect(&what);
    assert_protobuf(client, stored, &found, peer).await;
    assert_eq!(bare(found), stored.json, "{what}");

    let version = list["metadata"]["resourceVersion"].as_str().expect(&what);
    let selector = format!("fieldSelector=metadata.name%3D{}", stored.name);
    let watch = format!("?watch=true&resourceVersion={version}&{selector}");
    let watch = stored.path(&watch);
    let watching = until_deleted(client, &watch, stored.stays());
    let changing = async {
        let refused = update(client, raw, stored, peer).await;
        delete(client, stored).await;
        refused
    };
    let both = async { futures::join!(watching, changing) };
    let (events, refused) = tokio::time::timeout(DEADLINE, both).await.expect(&what);
    let (last, before) = events.split_last().expect(&what);
    let deleted = if stored.stays() {
        "MODIFIED"
    } else {
        "DELETED"
    };
    assert_eq!(last["type"], deleted, "{what}");
    if refused.is_none() {
        let first = before.first().expect(&what);
        assert_eq!(first["type"], "MODIFIED", "{what}");
        assert_eq!(
            first["object"]["metadata"]["labels"]["seen"], "yes",
            "{what}"
        );
    }
    let left = raw.get(what.clone(), None).await.expect("etcd").count();
    assert_eq!(left, i64::from(stored.stays()), "{what}");
    refused
}

/// Compares the answer in protobuf with what protoc writes of the object, byte for byte.
async fn assert_protobuf(client: &Client, stored: &Stored, json: &Value, peer: &Peer) {
    let what = stored.key();
    let request =
        Request::get(stored.own_path()).header("Accept", "application/vnd.kubernetes.protobuf");
    let request = requests::with_document(request, &Value::Null);
    let found = requests::send(client, request).await.into_body();
    let version = &stored.resource.group_version.version;
    let version = version_in_files(&stored.resource, version);
    let (expected, _) = peer
        .written(json, &version, &stored.resource.kind)
        .expect(&what);
    assert_eq!(found, expected, "{what}");
}

/// Labels an object. Gives why it could not be done, if what the object holds is the reason.
async fn update(
    client: &Client,
    raw: &mut EtcdClient,
    stored: &Stored,
    peer: &Peer,
) -> Option<String> {
    let what = stored.key();
    let patch = json!({"metadata": {"labels": {"seen": "yes"}}});
    let request = Request::patch(stored.own_path());
    let request = request.header("Content-Type", "application/merge-patch+json");
    let patched = match send(client, request, &patch).await {
        Ok(object) => object,
        Err(Error::Api(status)) if status.code == 422 => {
            // What it holds may be wrong, but that it is changed is not.
            let change = [
                "immutable",
                "may not change",
                "updates to",
                "may not be changed",
            ];
            let changed = change.iter().any(|it| status.message.contains(it));
            assert!(!changed, "{what}: {}", status.message);
            return Some(format!("{what}: {}", status.message));
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let understood = stored.understood(raw, peer).await;
    let patched = bare(patched);
    assert_eq!(understood, patched, "{what}");
    let mut expected = stored.json.clone();
    expected["metadata"]["labels"]["seen"] = "yes".into();
    // Labels of an endpoint slice count for its generation.
    if stored.resource.kind == "EndpointSlice" {
        expected["metadata"]["generation"] = 1.into();
    }
    // An update leaves the names of a ServiceAccount's secrets alone.
    let secrets = expected.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        if stored.resource.kind == "ServiceAccount" {
            *secret = json!({"name": secret["name"]});
        }
    }
    assert_eq!(patched, expected, "{what}");
    None
}

async fn delete(client: &Client, stored: &Stored) {
    let request = Request::delete(stored.own_path()).header("Content-Type", "application/json");
    // By default some kinds wait for the garbage collector, and pods for their node.
    let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    let deleted = send(client, request, &options).await;
    deleted.unwrap_or_else(|error| panic!("{}: {error}", stored.key()));
}
