//! The requests that are counted.

mod custom_resources;

use bytes::Bytes;
use http::{Method, Request};
use ringwatch::codec;
use serde_json::{Value, json};

use self::custom_resources::{SITES, custom_resource, define};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The number of bytes of data that a ConfigMap has.
const CONFIG_MAP_BYTES: usize = 800;

/// A request that is counted.
pub struct Subject {
    pub name: &'static str,
    /// The requests that make what it needs. The last one makes the object that it changes or reads.
    pub first: &'static [fn() -> Request<Bytes>],
    /// Returns the request of a number, given the answer before it.
    pub request: fn(u64, Option<&Bytes>) -> Request<Bytes>,
    /// True if the answer's body never ends, so that only its head is waited for.
    pub is_watch: bool,
}

/// All requests that are counted.
pub const REQUESTS: &[Subject] = &[
    Subject {
        name: "renew-lease",
        first: &[|| {
            let lease = codec::encode_value(&lease()).unwrap();
            request(Method::POST, LEASES, PROTOBUF, lease.into())
        }],
        request: renewal,
        is_watch: false,
    },
    Subject {
        name: "create-config-map",
        first: &[],
        request: |number, _| {
            let object = config_map(&format!("created-{number}")).to_string();
            request(Method::POST, CONFIG_MAPS, JSON, object.into())
        },
        is_watch: false,
    },
    Subject {
        name: "create-pod",
        // Without it no pod is admitted.
        first: &[|| {
            let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}});
            request(
                Method::POST,
                &in_default("serviceaccounts"),
                JSON,
                account.to_string().into(),
            )
        }],
        request: |number, _| {
            let pod = codec::encode_value(&pod(&format!("shop-{number}"))).unwrap();
            request(Method::POST, &in_default("pods"), PROTOBUF, pod.into())
        },
        is_watch: false,
    },
    Subject {
        name: "update-config-map",
        first: &[|| {
            let object = config_map("updated").to_string();
            request(Method::POST, CONFIG_MAPS, JSON, object.into())
        }],
        request: update,
        is_watch: false,
    },
    Subject {
        name: "create-custom-resource",
        first: &[define],
        request: |number, _| {
            let object = custom_resource(&format!("created-{number}")).to_string();
            request(Method::POST, SITES, JSON, object.into())
        },
        is_watch: false,
    },
    Subject {
        name: "update-custom-resource",
        first: &[define, || {
            let object = custom_resource("updated").to_string();
            request(Method::POST, SITES, JSON, object.into())
        }],
        request: |number, last| {
            let mut object: Value = serde_json::from_slice(last.unwrap()).unwrap();
            object["spec"]["image"] = format!("registry.example.com/site:1.2.{number}").into();
            let uri = format!("{SITES}/updated");
            request(Method::PUT, &uri, JSON, object.to_string().into())
        },
        is_watch: false,
    },
    Subject {
        name: "get-config-map",
        first: &[create_one],
        request: |_, _| get(&format!("{CONFIG_MAPS}/one")),
        is_watch: false,
    },
    Subject {
        name: "list-config-maps",
        first: &[create_one],
        request: |_, _| get(&format!("{CONFIG_MAPS}?resourceVersion=0")),
        is_watch: false,
    },
    Subject {
        name: "watch-config-maps",
        first: &[create_one],
        request: |_, _| get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=0")),
        is_watch: true,
    },
];

fn create_one() -> Request<Bytes> {
    let object = config_map("one").to_string();
    request(Method::POST, CONFIG_MAPS, JSON, object.into())
}

fn get(uri: &str) -> Request<Bytes> {
    request(Method::GET, uri, JSON, Bytes::new())
}

/// Returns a renewal as a kubelet sends it: the Lease of the last answer with another time, in protobuf.
fn renewal(number: u64, last: Option<&Bytes>) -> Request<Bytes> {
    let json = codec::to_json(last.unwrap(), ("", "")).unwrap();
    let mut lease: Value = serde_json::from_slice(&json).unwrap();
    lease["spec"]["renewTime"] = format!("2026-01-01T00:00:{number:02}.000000Z").into();
    let uri = format!("{LEASES}/node-1");
    let body = codec::encode_value(&lease).unwrap();
    request(Method::PUT, &uri, PROTOBUF, body.into())
}

/// Returns an update of the last answer in JSON, which changes a label.
fn update(number: u64, last: Option<&Bytes>) -> Request<Bytes> {
    let mut object: Value = serde_json::from_slice(last.unwrap()).unwrap();
    object["metadata"]["labels"]["changed"] = number.to_string().into();
    let uri = format!("{CONFIG_MAPS}/updated");
    request(Method::PUT, &uri, JSON, object.to_string().into())
}

fn request(method: Method, uri: &str, form: &str, body: Bytes) -> Request<Bytes> {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("content-type", form).header("accept", form);
    request
        .header("user-agent", "kubelet/v1.36.2")
        .body(body)
        .unwrap()
}

/// Returns the Lease of a node as a kubelet makes it.
fn lease() -> Value {
    json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "node-1", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "node-1",
                "uid": "10000000-0000-0000-0000-000000000000"}]},
        "spec": {"holderIdentity": "node-1", "leaseDurationSeconds": 40,
            "renewTime": "2026-01-01T00:00:00.000000Z"},
    })
}

/// Returns the path of a core resource in the namespace of all objects.
fn in_default(resource: &str) -> String {
    format!("/api/v1/namespaces/default/{resource}")
}

/// Returns a pod as the controller of a ReplicaSet makes it.
fn pod(name: &str) -> Value {
    let probe = json!({"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10});
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "shop", "pod-template-hash": "5d59d67564"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop",
                "uid": "10000000-0000-0000-0000-000000000000", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {
            "containers": [{
                "name": "shop",
                "image": "registry.example.com/shop:1.2.3",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "LEVEL", "value": "info"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
                "livenessProbe": probe,
                "readinessProbe": probe,
                "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop", "readOnly": true}],
                "securityContext": {"runAsNonRoot": true, "allowPrivilegeEscalation": false},
            }],
            "volumes": [{"name": "settings", "configMap": {"name": "shop"}}],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}],
        },
    })
}

fn config_map(name: &str) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "shop"}},
        "data": {"text": "x".repeat(CONFIG_MAP_BYTES)},
    })
}
