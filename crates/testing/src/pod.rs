//! A pod as a cluster has it: written by a ReplicaSet, placed by the scheduler, reported by a kubelet.

use serde_json::{Value, json};

/// Returns the pod, about 7 KB of JSON, of which a third says who manages which field.
pub fn pod(name: &str) -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": "web-7d4b9c6f58-",
            "namespace": "shop",
            "uid": "0d3bf1a2-94c8-4fb3-9d2c-52a5d7a1e0c6",
            "creationTimestamp": "2026-11-20T08:15:30Z",
            "labels": {"app": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d4b9c6f58"},
            "annotations": {
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "8080",
                "prometheus.io/scrape": "true",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c6f58",
                "uid": "7a0ad1f4-31cb-4f0c-b1b8-4a4a1e9b7f19", "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": [
                managed("kube-controller-manager", "", &metadata_fields()),
                managed("kubelet", "status", &status_fields()),
            ],
        },
        "spec": spec(),
        "status": status(),
    })
}

fn spec() -> Value {
    json!({
        "volumes": [
            {"name": "config", "configMap": {"name": "web-config", "defaultMode": 420}},
            {"name": "kube-api-access-x2v7k", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ]}},
        ],
        "containers": [container("web", 8080), container("proxy", 15001)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "web",
        "serviceAccount": "web",
        "nodeName": "worker-17",
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": true, "fsGroup": 1000},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300},
        ],
        "priority": 0,
        "enableServiceLinks": true,
        "preemptionPolicy": "PreemptLowerPriority",
    })
}

fn container(name: &str, port: u16) -> Value {
    json!({
        "name": name,
        "image": format!("registry.example.com/shop/{name}:v2.14.3"),
        "args": ["--listen=:8080", "--config=/etc/app/config.yaml", "--log-level=info"],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "REGION", "value": "eu-central-1"},
            {"name": "UPSTREAM", "value": "http://orders.shop.svc.cluster.local:8080"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "web", "key": "password"}}},
        ],
        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": true, "mountPath": "/etc/app"},
            {"name": "kube-api-access-x2v7k", "readOnly": true,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true},
    })
}

fn status() -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "observedGeneration": 1, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-11-20T08:15:34Z"})
    };
    let container = |name: &str| {
        let image = format!("registry.example.com/shop/{name}");
        let digest = "9b7a6bd2b3c8a7f0d1e9450c26a1f3de57b6ab0e1c94b1a6b7c2f5d8e3a90142";
        json!({
            "name": name, "ready": true, "restartCount": 0, "started": true, "image": format!("{image}:v2.14.3"),
            "imageID": format!("{image}@sha256:{digest}"), "containerID": format!("containerd://{digest}"),
            "state": {"running": {"startedAt": "2026-11-20T08:15:33Z"}}, "lastState": {},
        })
    };
    let conditions = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    let conditions = conditions.map(condition);
    let containers = ["proxy", "web"].map(container);
    json!({
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": conditions,
        "hostIP": "10.0.3.17",
        "hostIPs": [{"ip": "10.0.3.17"}],
        "podIP": "10.244.17.93",
        "podIPs": [{"ip": "10.244.17.93"}],
        "startTime": "2026-11-20T08:15:30Z",
        "containerStatuses": containers,
        "qosClass": "Burstable",
    })
}

fn managed(manager: &str, subresource: &str, fields: &Value) -> Value {
    let mut entry = json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
        "time": "2026-11-20T08:15:34Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    if !subresource.is_empty() {
        entry["subresource"] = json!(subresource);
    }
    entry
}

fn metadata_fields() -> Value {
    let container = json!({".": {}, "f:args": {}, "f:env": {".": {}, "k:{\"name\":\"REGION\"}":
        {".": {}, "f:name": {}, "f:value": {}}}, "f:image": {}, "f:imagePullPolicy": {}, "f:livenessProbe":
        {".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}, "f:scheme": {}},
        "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {}}, "f:name": {}, "f:resources":
        {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}}, "f:volumeMounts": {".": {},
        "k:{\"mountPath\":\"/etc/app\"}": {".": {}, "f:mountPath": {}, "f:name": {}, "f:readOnly": {}}}});
    json!({
        "f:metadata": {"f:annotations": {".": {}, "f:prometheus.io/path": {}, "f:prometheus.io/port": {}},
            "f:generateName": {}, "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"7a0ad1f4-31cb-4f0c-b1b8-4a4a1e9b7f19\"}": {}}},
        "f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": container, "k:{\"name\":\"web\"}": container},
            "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
            "f:securityContext": {".": {}, "f:fsGroup": {}, "f:runAsNonRoot": {}, "f:runAsUser": {}},
            "f:serviceAccount": {}, "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {}},
    })
}

fn status_fields() -> Value {
    let condition = json!({".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}});
    json!({"f:status": {"f:conditions": {"k:{\"type\":\"ContainersReady\"}": condition,
        "k:{\"type\":\"Initialized\"}": condition, "k:{\"type\":\"Ready\"}": condition},
        "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:podIPs":
        {".": {}, "k:{\"ip\":\"10.244.17.93\"}": {".": {}, "f:ip": {}}}, "f:startTime": {}}})
}
