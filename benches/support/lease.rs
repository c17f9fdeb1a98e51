//! A Lease, of which a cluster has one for each node.

use serde_json::{Value, json};

/// Returns the Lease of a node as a kubelet renews it.
pub fn lease(number: u64) -> Value {
    let name = format!("node-{number:07}");
    json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": "kube-node-lease",
            "uid": format!("00000000-0000-0000-0000-{number:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name,
                "uid": format!("10000000-0000-0000-0000-{number:012}")}],
            "managedFields": [{"manager": "kubelet", "operation": "Update",
                "apiVersion": "coordination.k8s.io/v1", "time": "2026-01-01T00:00:10Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:ownerReferences": {".": {},
                    "k:{\"uid\":\"10000000-0000-0000-0000-000000000000\"}": {}}},
                    "f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}, "f:renewTime": {}}}}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40,
            "renewTime": "2026-01-01T00:00:10.000000Z"},
    })
}
