//! An object of each kind that has defaults, in its storage version, in which every rule finds what it needs and with
//! which kube-apiserver finds nothing wrong.

use serde_json::{Value, json};

use crate::registry::Resource;

/// What is at a path for the rules that need something there.
pub(super) fn value(path: &str) -> Value {
    match path {
        "ip" => json!("192.0.2.1"),
        "resources.limits" => json!({"cpu": "1"}),
        "spec.behavior" => json!({}),
        "spec.externalIPs" => json!(["192.0.2.1"]),
        "spec.podFailurePolicy" => json!({"rules": [{"action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}),
        "spec.resources" => json!({"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}),
        _ => panic!("a rule needs something at {path}: say what"),
    }
}

/// An object of a kind.
pub(super) fn object(resource: &Resource) -> Value {
    let mut object = content(&resource.storage_kind);
    object["apiVersion"] = json!(resource.storage_version.to_string());
    object["kind"] = json!(resource.storage_kind);
    let name = match resource.storage_kind.as_str() {
        "APIService" => "v1.defaults.example.com",
        "CustomResourceDefinition" => "widgets.defaults.example.com",
        _ => "defaults",
    };
    object["metadata"] = json!({"name": name});
    if resource.namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

fn content(kind: &str) -> Value {
    match kind {
        "Pod" => json!({"spec": pod(), "status": pod_status()}),
        "PodTemplate" => json!({"template": template()}),
        "Deployment" | "ReplicaSet" | "DaemonSet" => {
            json!({"spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template()}})
        }
        "StatefulSet" => json!({"spec": {"selector": {"matchLabels": {"app": "d"}},
            "serviceName": "d", "template": template(),
            "volumeClaimTemplates": [{"metadata": {"name": "claim"}, "spec": claim()}]}}),
        "ReplicationController" => json!({"spec": {"template": template()}}),
        "Job" => job(),
        "CronJob" => json!({"spec": {"schedule": "0 0 * * *", "jobTemplate": job()}}),
        "PersistentVolumeClaim" => json!({"spec": claim()}),
        "PersistentVolume" => json!({"spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"]}}),
        "HorizontalPodAutoscaler" => json!({"spec": {"maxReplicas": 3, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
        "ResourceClaim" => json!({"spec": devices()}),
        "ResourceClaimTemplate" => json!({"spec": {"spec": devices()}}),
        _ => of_cluster(kind),
    }
}

fn of_cluster(kind: &str) -> Value {
    let service = json!({"namespace": "default", "name": "s"});
    match kind {
        "Namespace" | "Secret" | "PodDisruptionBudget" | "CSIDriver" | "Endpoints" => json!({}),
        "Service" => json!({"spec": {"ports": [{"port": 80}]}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["192.0.2.1"]}]}),
        "Node" => json!({"status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready"}]}}),
        "LimitRange" => json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
        "StorageClass" => json!({"provisioner": "example.com/p"}),
        "PriorityClass" => json!({"value": 7}),
        "IngressClass" => json!({"spec": {"controller": "example.com/c",
            "parameters": {"kind": "ConfigMap", "name": "c"}}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {},
            "ingress": [{"ports": [{"port": 80}]}], "egress": [{"ports": [{"port": 80}]}]}}),
        "RoleBinding" | "ClusterRoleBinding" => {
            json!({"roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "name": "jane"}]})
        }
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "global-default"}}}),
        "PriorityLevelConfiguration" => json!({"spec": {"type": "Limited", "limited": {
            "limitResponse": {"type": "Queue", "queuing": {}}}}}),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => json!({"webhooks": [{
            "name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": service}, "rules": [rule()]}]}),
        "ValidatingAdmissionPolicy" => json!({"spec": {"validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": [rule()]}}}),
        "MutatingAdmissionPolicy" => json!({"spec": {"reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule()]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                "Object{metadata: Object.metadata{labels: {\"a\": \"b\"}}}"}}]}}),
        "ValidatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "p",
            "validationActions": ["Deny"], "matchResources": {"resourceRules": [rule()]}}}),
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "p",
            "matchResources": {"resourceRules": [rule()]}}}),
        "APIService" => json!({"spec": {"group": "defaults.example.com", "version": "v1",
            "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
            "service": service}}),
        "CustomResourceDefinition" => json!({"spec": {"group": "defaults.example.com",
            "version": "v1", "scope": "Namespaced", "preserveUnknownFields": false,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
            "validation": {"openAPIV3Schema": {"type": "object"}},
            "conversion": {"strategy": "Webhook", "conversionReviewVersions": ["v1"],
                "webhookClientConfig": {"service": service}}}}),
        _ => panic!("{kind} has defaults: write a sample of it"),
    }
}

fn rule() -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]})
}

fn devices() -> Value {
    let class = "c.example.com";
    json!({"devices": {"requests": [
        {"name": "a", "exactly": {"deviceClassName": class, "tolerations": [{"key": "k"}]}},
        {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": class,
            "tolerations": [{"key": "k"}]}]}]}})
}

fn claim() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}

fn job() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"spec": {"template": template}})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "d"}}, "spec": pod()})
}

/// A pod with every kind of volume that has defaults, and a probe of each kind.
fn pod() -> Value {
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let file = json!({"path": "name", "fieldRef": {"fieldPath": "metadata.name"}});
    let get = json!({"httpGet": {"port": 80}});
    json!({
        "hostNetwork": true,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "initContainers": [{"name": "first", "image": "i", "ports": [{"containerPort": 81}]}],
        "containers": [
            {"name": "a", "image": "i:1", "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "valueFrom": field}],
                "resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}},
                "lifecycle": {"postStart": get, "preStop": get},
                "livenessProbe": get, "readinessProbe": get, "startupProbe": get},
            {"name": "b", "image": "i:1",
                "env": [{"name": "B", "valueFrom": {"fileKeyRef":
                    {"volumeName": "empty", "path": "f", "key": "k"}}}],
                "livenessProbe": {"grpc": {"port": 80}}, "readinessProbe": {"grpc": {"port": 80}},
                "startupProbe": {"grpc": {"port": 80}}},
        ],
        "volumes": [
            {"name": "empty"},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "config", "configMap": {"name": "c"}},
            {"name": "downward", "downwardAPI": {"items": [file]}},
            {"name": "projected", "projected": {"sources": [
                {"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [file]}}]}},
            {"name": "image", "image": {"reference": "i:1"}},
            {"name": "host", "hostPath": {"path": "/h"}},
            {"name": "iscsi", "iscsi": {"targetPortal": "192.0.2.1", "lun": 0,
                "iqn": "iqn.2001-04.com.example:storage.disk1"}},
            {"name": "rbd", "rbd": {"monitors": ["192.0.2.1"], "image": "i"}},
            {"name": "azure", "azureDisk": {"diskName": "d",
                "diskURI": "https://a.blob.core.windows.net/b/c.vhd"}},
            {"name": "scale", "scaleIO": {"gateway": "https://g", "system": "s", "volumeName": "v",
                "secretRef": {"name": "s"}}},
            {"name": "ephemeral", "ephemeral": {"volumeClaimTemplate": {"spec": claim()}}},
        ],
    })
}

fn pod_status() -> Value {
    json!({"podIP": "192.0.2.2", "podIPs": [{"ip": "192.0.2.2"}]})
}
