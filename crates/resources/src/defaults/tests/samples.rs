//! Objects of each kind that has defaults, in its storage version, in which the rules find what they need and with
//! which kube-apiserver finds nothing wrong.

use ringwatch_registry::Resource;
use serde_json::{Value, json};

/// Returns a value at a path, for the rules that need one there.
pub(super) fn value(path: &str) -> Value {
    match path {
        "default" | "max" => json!({"cpu": "2"}),
        "ip" => json!("192.0.2.1"),
        "min" => json!({"cpu": "1"}),
        "resources.limits" => json!({"cpu": "1"}),
        "spec.behavior" => json!({}),
        "spec.externalIPs" => json!(["192.0.2.1"]),
        "spec.podFailurePolicy" => policy(),
        "spec.updateStrategy.rollingUpdate" => json!({}),
        "status.capacity" => json!({"cpu": "4"}),
        "spec.resources" => json!({"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}),
        _ => panic!("a rule needs something at {path}: say what"),
    }
}

/// Returns the objects of a kind. The first is for all rules that find their place in none.
pub(super) fn objects(resource: &Resource) -> Vec<Value> {
    let contents = match resource.storage_kind.as_str() {
        "PersistentVolume" => volumes(),
        "VolumeAttachment" => volumes().into_iter().map(attachment).collect(),
        "Job" => vec![job(), job_with_policy()],
        kind => vec![content(kind)],
    };
    contents
        .into_iter()
        .map(|content| object(resource, content))
        .collect()
}

fn object(resource: &Resource, mut object: Value) -> Value {
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
        "CronJob" => json!({"spec": {"schedule": "0 0 * * *", "jobTemplate": job_with_policy()}}),
        "PersistentVolumeClaim" => json!({"spec": claim()}),
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
        "Namespace" | "Secret" | "PodDisruptionBudget" | "CSIDriver" => json!({}),
        "Endpoints" => {
            json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]})
        }
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

fn job_with_policy() -> Value {
    let mut job = job();
    job["spec"]["podFailurePolicy"] = policy();
    job
}

/// Returns a policy about failures of pods.
fn policy() -> Value {
    json!({"rules": [{"action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "d"}}, "spec": pod()})
}

/// Returns a volume of the cluster for each kind of volume that has defaults.
fn volumes() -> Vec<Value> {
    let of_kind = |(kind, source): (&str, Value)| json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], kind: source}});
    let mut sources = sources();
    // A volume of the cluster names a secret in whole.
    sources[4].1["secretRef"]["namespace"] = json!("default");
    sources.into_iter().map(of_kind).collect()
}

/// Returns a VolumeAttachment with a volume of the cluster in it.
fn attachment(volume: Value) -> Value {
    let mut inline = volume["spec"].clone();
    inline["persistentVolumeReclaimPolicy"] = json!("Retain");
    json!({"spec": {"attacher": "a.example.com", "nodeName": "n",
        "source": {"inlineVolumeSpec": inline}}})
}

/// Sources of volumes that pods and the cluster may both have.
fn sources() -> [(&'static str, Value); 5] {
    [
        ("hostPath", json!({"path": "/h"})),
        (
            "iscsi",
            json!({"targetPortal": "192.0.2.1", "lun": 0, "iqn": "iqn.2001-04.com.example:storage.disk1"}),
        ),
        ("rbd", json!({"monitors": ["192.0.2.1"], "image": "i"})),
        (
            "azureDisk",
            json!({"diskName": "d", "diskURI": "https://a.blob.core.windows.net/b/c.vhd"}),
        ),
        (
            "scaleIO",
            json!({"gateway": "https://g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}),
        ),
    ]
}

/// Returns a container with probes of a kind, which also may be an init container.
fn container(name: &str, probe: &Value) -> Value {
    json!({"name": name, "image": "i:1", "livenessProbe": probe, "readinessProbe": probe,
        "startupProbe": probe})
}

/// Returns a container whose probes and hooks speak HTTP, and which has a port and learns its pod's name.
fn talkative_container(name: &str, port: u16) -> Value {
    let get = json!({"httpGet": {"port": port}});
    let mut container = container(name, &get);
    container["lifecycle"] = json!({"postStart": get, "preStop": get});
    container["ports"] = json!([{"containerPort": port}]);
    container["env"] = json!([
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "B", "valueFrom": {"fileKeyRef": {"volumeName": "empty", "path": "f", "key": "k"}}},
    ]);
    container
}

/// Returns a pod with every kind of volume that has defaults, and containers with probes of every kind.
fn pod() -> Value {
    let grpc = json!({"grpc": {"port": 80}});
    let file = json!({"path": "name", "fieldRef": {"fieldPath": "metadata.name"}});
    let mut greedy = talkative_container("a", 80);
    greedy["resources"] = json!({"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}});
    let mut first = [talkative_container("c", 81), container("d", &grpc)];
    for container in &mut first {
        container["restartPolicy"] = json!("Always");
    }
    let mut volumes = vec![
        json!({"name": "empty"}),
        json!({"name": "secret", "secret": {"secretName": "s"}}),
        json!({"name": "config", "configMap": {"name": "c"}}),
        json!({"name": "downward", "downwardAPI": {"items": [file]}}),
        json!({"name": "projected", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [file]}}]}}),
        json!({"name": "image", "image": {"reference": "i:1"}}),
        json!({"name": "ephemeral", "ephemeral": {"volumeClaimTemplate": {"spec": claim()}}}),
    ];
    let sources = sources().into_iter();
    volumes
        .extend(sources.map(|(kind, source)| json!({"name": kind.to_lowercase(), kind: source})));
    json!({
        "hostNetwork": true,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "initContainers": first,
        "containers": [greedy, container("b", &grpc)],
        "volumes": volumes,
    })
}

fn pod_status() -> Value {
    json!({"podIP": "192.0.2.2", "podIPs": [{"ip": "192.0.2.2"}]})
}
