//! Objects made for tests: small ones with odd members, and some of the size that clusters keep.

use serde_json::{Value, json};

/// Bytes of text in each large object.
const TEXT_BYTES: usize = 4 << 10;

/// Returns an object of each of some kinds, with their kinds and versions.
pub fn objects() -> Vec<Value> {
    vec![
        json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"a": "b", "c": "d"}, "creationTimestamp": "2026-11-20T08:15:30Z",
                "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {".": {}, "k:{\"n\":\"x\"}": {}}}}]},
            "spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
                "containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "livenessProbe": {"httpGet": {"port": "x"}}}]}}),
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "AAEC", "b": ""}}),
        json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "x"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "xs", "kind": "X"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "a": {"items": {"type": "string"}, "maximum": 1.5, "default": {"x": [1, null]}},
                "b": {"additionalProperties": true, "enum": ["<", 1e9]}}}}}]}}),
        json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "r"}, "revision": 3,
            "data": {"spec": {"template": {"x": "\u{2028}"}}}}),
        json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"},
            "spec": {"renewTime": "2026-11-20T08:15:30.000001Z", "leaseDurationSeconds": 15}}),
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "page"},
            "data": {"text": "all work and no play ".repeat(TEXT_BYTES / 21)}, "binaryData": {"zeros": "AAAA".repeat(TEXT_BYTES / 4)}}),
        json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-1"},
            "status": {"images": (0..20).map(|number| json!({"sizeBytes": 100 + number,
                "names": [format!("registry.example/team/service-{number}@sha256:{}", "0f".repeat(32))]})).collect::<Vec<_>>()}}),
        json!({"kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": "d", "annotations": {"example.com/applied": "{\"spec\": {}} ".repeat(TEXT_BYTES / 13)}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i", "args": ["--verbose", "--port=80"]}]}}}}),
    ]
}
