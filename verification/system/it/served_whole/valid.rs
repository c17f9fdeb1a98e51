//! An object of each kind whose test object holds what no object may: every text in those is the name of its
//! field, and each choice is made at once.

use serde_json::{Value, json};

/// The version of webhooks and policies.
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// The objects, each with its kind and version, but without metadata.
pub(super) fn valid() -> Vec<Value> {
    [
        workloads(),
        core(),
        around(),
        network(),
        policies(),
        devices(),
        storage(),
        admission(),
    ]
    .concat()
}

/// Returns an object with the version and the kind of its type.
fn typed(version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    object
}

/// A template of pods that is restarted as said.
fn template(restart: &str) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": pod(restart)})
}

fn pod(restart: &str) -> Value {
    json!({"restartPolicy": restart, "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler", "securityContext": {}, "nodeName": "n",
        "enableServiceLinks": true,
        "serviceAccountName": "default", "serviceAccount": "default",
        "containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "ports": [{"name": "web", "containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": "1"}}}]})
}

fn workloads() -> Vec<Value> {
    let selector = json!({"matchLabels": {"app": "a"}});
    let running = json!({"replicas": 1, "selector": selector, "template": template("Always")});
    let mut rolled = running.clone();
    rolled["revisionHistoryLimit"] = 10.into();
    rolled["progressDeadlineSeconds"] = 600.into();
    rolled["strategy"] = json!({"type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
    let mut set = running.clone();
    set["revisionHistoryLimit"] = 10.into();
    set["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    set["serviceName"] = "s".into();
    set["podManagementPolicy"] = "OrderedReady".into();
    set["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    let mut everywhere = running.clone();
    everywhere["revisionHistoryLimit"] = 10.into();
    everywhere["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    if let Some(spec) = everywhere.as_object_mut() {
        spec.remove("replicas");
    }
    let job = json!({"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed",
        "suspend": false, "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": true, "selector": selector,
        "template": template("Never")});
    let later = json!({"parallelism": 1, "template": template("Never")});
    let mut tolerant = pod("Always");
    let tolerations = ["not-ready", "unreachable"].map(|trouble| {
        json!({"key": format!("node.kubernetes.io/{trouble}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    });
    tolerant["tolerations"] = json!(tolerations);
    vec![
        typed(
            "v1",
            "Pod",
            json!({"spec": tolerant,
            "status": {"phase": "Running", "qosClass": "Burstable"}}),
        ),
        typed("v1", "PodTemplate", json!({"template": template("Always")})),
        typed(
            "v1",
            "ReplicationController",
            json!({"spec": {"replicas": 1, "selector": {"app": "a"},
            "template": template("Always")}}),
        ),
        typed("apps/v1", "Deployment", json!({"spec": rolled})),
        typed("apps/v1", "ReplicaSet", json!({"spec": running})),
        typed("apps/v1", "StatefulSet", json!({"spec": set})),
        typed("apps/v1", "DaemonSet", json!({"spec": everywhere})),
        typed("batch/v1", "Job", json!({"spec": job})),
        typed(
            "batch/v1",
            "CronJob",
            json!({"spec": {"schedule": "*/5 * * * *", "concurrencyPolicy": "Allow",
            "suspend": false, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": later}}}),
        ),
    ]
}

fn core() -> Vec<Value> {
    let claim = json!({"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}});
    vec![
        typed(
            "v1",
            "Node",
            json!({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"],
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi"},
                "allocatable": {"cpu": "4", "memory": "8Gi"}}}),
        ),
        typed(
            "v1",
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem", "hostPath": {"path": "/v", "type": ""}},
            "status": {"phase": "Available"}}),
        ),
        typed(
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": claim, "status": {"phase": "Pending"}}),
        ),
        typed(
            "v1",
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "4", "requests.cpu": "2"}},
            "status": {"used": {"pods": "1"}}}),
        ),
        typed(
            "v1",
            "Service",
            json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.77",
            "clusterIPs": ["10.0.0.77"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "selector": {"app": "a"},
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": "web"}]}}),
        ),
        typed(
            "v1",
            "Namespace",
            json!({"spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"}}),
        ),
        typed(
            "v1",
            "Event",
            json!({"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Started", "message": "it runs", "type": "Normal", "count": 2,
            "source": {"component": "kubelet"}, "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:01Z"}),
        ),
    ]
}

fn around() -> Vec<Value> {
    vec![
        typed(
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"holderIdentity": "h",
            "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000001Z"}}),
        ),
        typed(
            "storage.k8s.io/v1",
            "CSINode",
            json!({"spec": {"drivers": [{"name": "d.example.com",
            "nodeID": "n", "topologyKeys": ["zone"]}]}}),
        ),
        typed(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            json!({"spec": {"attacher": "d.example.com",
            "nodeName": "n", "source": {"persistentVolumeName": "v"}}, "status": {"attached": true}}),
        ),
        typed(
            "node.k8s.io/v1",
            "RuntimeClass",
            json!({"handler": "runc",
            "overhead": {"podFixed": {"cpu": "1"}}}),
        ),
    ]
}

fn network() -> Vec<Value> {
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    vec![
        typed(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}],
            "ports": [{"name": "web", "port": 80, "protocol": "TCP"}]}),
        ),
        typed(
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"ingressClassName": "c",
            "rules": [{"host": "a.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
        ),
        typed(
            "networking.k8s.io/v1",
            "IngressClass",
            json!({"spec": {"controller": "example.com/c"}}),
        ),
        typed(
            "networking.k8s.io/v1",
            "ServiceCIDR",
            json!({"spec": {"cidrs": ["10.2.0.0/24"]}}),
        ),
        typed(
            "networking.k8s.io/v1",
            "IPAddress",
            json!({"spec": {"parentRef":
            {"resource": "services", "namespace": "default", "name": "s"}}}),
        ),
    ]
}

fn policies() -> Vec<Value> {
    let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"});
    let role = |kind: &str| {
        json!({"roleRef": {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": "r"},
            "subjects": [subject]})
    };
    let rules = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    let webhook = json!({"name": "w.example.com", "sideEffects": "None", "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent", "timeoutSeconds": 10, "namespaceSelector": {}, "objectSelector": {},
        "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"],
            "resources": ["things"], "scope": "*"}]});
    let mut mutating = webhook.clone();
    mutating["reinvocationPolicy"] = "Never".into();
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    vec![
        typed(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1,
            "selector": {"matchLabels": {"app": "b"}}},
            "status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0,
                "expectedPods": 1}}),
        ),
        typed(
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 30,
                "lendablePercent": 0, "limitResponse": {"type": "Reject"}}}, "status": {}}),
        ),
        typed(RBAC, "Role", rules.clone()),
        typed(RBAC, "ClusterRole", rules),
        typed(RBAC, "RoleBinding", role("Role")),
        typed(RBAC, "ClusterRoleBinding", role("ClusterRole")),
        typed(
            ADMISSION,
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [webhook]}),
        ),
        typed(
            ADMISSION,
            "MutatingWebhookConfiguration",
            json!({"webhooks": [mutating]}),
        ),
        typed(
            ADMISSION,
            "ValidatingAdmissionPolicy",
            json!({"spec": {"failurePolicy": "Ignore",
            "matchConstraints": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                "resourceRules": [{"operations": ["CREATE"], "apiGroups": ["none.example.com"],
                    "apiVersions": ["v1"], "resources": ["things"], "scope": "*"}]},
            "validations": [{"expression": "true"}]}}),
        ),
        typed(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            json!({"spec": {"matchingPrecedence": 1000,
            "priorityLevelConfiguration": {"name": "l"}, "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": "u"}}],
                "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
                    "namespaces": ["default"]}]}]}}),
        ),
        typed(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            json!({"spec": {
            "request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"],
            "username": "u"}}),
        ),
    ]
}

/// A request for a certificate, in PEM and base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmRUQlpNQk1HQnlx\
    R1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQkYvczY2VVphYiswbUhHNyt3NC9sUkE0dTRUMVNaWFdvTncyWHVZL0c5TThnNmFz\
    TWVvN0xUQXRzSlY5Ym9UCitJc3hjazI0WDZMUUxVRXVnWXN0VGlXZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQU9qb3A2U2sx\
    YldTWFMKOG5hUklWOTJ3OE9HSTBqKzE1SWw2V1ZhSVhOaFlRSWhBTDlqYVBXbjdnWmxwaXl0Tm9HL0ZDeG0vOHVETnVMdQovK2pZ\
    WnFaMjZTZEwKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

fn devices() -> Vec<Value> {
    const V1: &str = "resource.k8s.io/v1";
    let devices = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c.example.com",
        "allocationMode": "ExactCount", "count": 1}}]}});
    vec![
        typed(
            V1,
            "DeviceClass",
            json!({"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        ),
        typed(V1, "ResourceClaim", json!({"spec": devices})),
        typed(
            V1,
            "ResourceClaimTemplate",
            json!({"spec": {"spec": devices}}),
        ),
        typed(
            V1,
            "ResourceSlice",
            json!({"spec": {"driver": "d.example.com", "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "one"}]}}),
        ),
    ]
}

fn storage() -> Vec<Value> {
    vec![
        typed(
            "storage.k8s.io/v1",
            "CSIDriver",
            json!({"spec": {"attachRequired": true, "podInfoOnMount": false, "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": false, "seLinuxMount": false,
                "volumeLifecycleModes": ["Persistent"], "preventPodSchedulingIfMissing": true}}),
        ),
        typed(
            "storage.k8s.io/v1",
            "CSIStorageCapacity",
            json!({"storageClassName": "s", "capacity": "0", "nodeTopology": {"matchLabels": {"a": "b"}}}),
        ),
        typed(
            "storage.k8s.io/v1",
            "StorageClass",
            json!({"provisioner": "p.example.com", "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate"}),
        ),
        typed(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"value": 7, "preemptionPolicy": "Never"}),
        ),
    ]
}

fn admission() -> Vec<Value> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods"], "scope": "*"});
    let all = json!({"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"});
    let mut pods = all.clone();
    pods["resourceRules"] = json!([rule]);
    vec![
        typed(
            ADMISSION,
            "MutatingAdmissionPolicy",
            json!({"spec": {"matchConstraints": pods, "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                    "expression": "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'b'}]"}}]}}),
        ),
        typed(
            ADMISSION,
            "ValidatingAdmissionPolicyBinding",
            json!({"spec": {"policyName": "p", "validationActions": ["Deny"], "matchResources": all}}),
        ),
    ]
}
