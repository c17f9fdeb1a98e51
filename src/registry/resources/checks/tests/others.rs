//! What is refused in kinds that run nothing.

use serde_json::{Value, json};

use super::super::*;
use super::refused;
use crate::registry::resources::path::set;

#[test]
fn ingresses_that_are_wrong() {
    let good = json!({"metadata": {"name": "i"}, "spec": {"rules": [{"host": "*.example.com",
        "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}});
    let path = "spec.rules.0.http.paths.0";
    refused(
        networking::ingress,
        &good,
        &[
            (
                "spec.rules",
                Value::Null,
                &[
                    "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
                ],
            ),
            (
                "spec.rules.0/host",
                json!("1.2.3.4"),
                &[
                    "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
                ],
            ),
            (
                &format!("{path}/pathType"),
                Value::Null,
                &[
                    "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
                ],
            ),
            (
                &format!("{path}/path"),
                json!("a//b"),
                &[
                    "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must be an absolute path",
                    "spec.rules[0].http.paths[0].path: Invalid value: \"a//b\": must not contain '//'",
                ],
            ),
            (
                &format!("{path}/backend"),
                json!({}),
                &[
                    "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is required",
                ],
            ),
            (
                &format!("{path}/backend.service.port"),
                json!({}),
                &[
                    "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
                ],
            ),
        ],
    );
}

#[test]
fn network_policies_that_are_wrong() {
    let good = json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
            "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}]}]}});
    refused(
        networking::network_policy,
        &good,
        &[
            (
                "spec.ingress.0/from",
                json!([{}]),
                &["spec.ingress[0].from[0]: Required value: must specify a peer"],
            ),
            (
                "spec.ingress.0.from.0/ipBlock.except",
                json!(["11.0.0.0/16"]),
                &[
                    "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
                ],
            ),
            (
                "spec.ingress.0.ports.0/port",
                json!(100),
                &[
                    "spec.ingress[0].ports[0].endPort: Invalid value: 100: must be greater than or equal to `port`",
                ],
            ),
            (
                "spec.policyTypes",
                json!(["In"]),
                &[
                    "spec.policyTypes[0]: Unsupported value: \"In\": supported values: \"Ingress\", \"Egress\"",
                ],
            ),
        ],
    );
}

fn good_claim() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "1Gi"}}}})
}

#[test]
fn claims_that_are_wrong() {
    refused(
        claims::claim,
        &good_claim(),
        &[
            (
                "spec.accessModes",
                Value::Null,
                &["spec.accessModes: Required value: at least 1 access mode is required"],
            ),
            (
                "spec.accessModes",
                json!(["Some"]),
                &[
                    "spec.accessModes: Unsupported value: \"Some\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                ],
            ),
            (
                "spec.resources",
                json!({}),
                &["spec.resources[storage]: Required value"],
            ),
            (
                "spec.resources.requests.storage",
                json!("0"),
                &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"],
            ),
        ],
    );
}

#[test]
fn claims_change_little() {
    let claim = good_claim();
    let why = |path: &str, value: Value| {
        let mut new = claim.clone();
        set(&mut new, path, value);
        messages(&found_in_change(claims::claim_update, &new, &claim))
    };
    assert_eq!(why("spec.volumeName", json!("v")), [""; 0]);
    let immutable = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
    assert_eq!(
        why("spec.accessModes", json!(["ReadWriteMany"])),
        [immutable]
    );
    assert_eq!(
        why("spec.resources.requests.storage", json!("2Gi")),
        [immutable]
    );

    let volume = json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x", "type": ""}, "persistentVolumeReclaimPolicy": "Retain"}});
    refused(
        claims::volume,
        &volume,
        &[
            (
                "spec.hostPath",
                Value::Null,
                &["spec: Required value: must specify a volume type"],
            ),
            (
                "spec.capacity",
                Value::Null,
                &[
                    "spec.capacity: Required value",
                    "spec.capacity: Unsupported value: \"\": supported values: \"storage\"",
                ],
            ),
        ],
    );
    let mut moved = volume.clone();
    set(&mut moved, "spec.hostPath.path", json!("/y"));
    assert_eq!(
        messages(&found_in_change(claims::volume_update, &moved, &volume)),
        [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
        ]
    );
}

fn good_autoscaler() -> Value {
    json!({"spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]}})
}

#[test]
fn autoscalers_that_are_wrong() {
    let good = good_autoscaler();
    refused(
        autoscaling::autoscaler,
        &good,
        &[
            (
                "spec.minReplicas",
                json!(4),
                &[
                    "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                "spec.minReplicas",
                json!(0),
                &[
                    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
                ],
            ),
            (
                "spec.maxReplicas",
                json!(0),
                &[
                    "spec.maxReplicas: Required value: must be set and greater than 0",
                    "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                "spec.scaleTargetRef.name",
                Value::Null,
                &["spec.scaleTargetRef.name: Required value"],
            ),
            (
                "spec.metrics.0/resource.target",
                json!({"type": "Odd"}),
                &[
                    "spec.metrics[0].resource.target.type: Invalid value: \"Odd\": must be either Utilization, Value, or AverageValue",
                    "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
                ],
            ),
            (
                "spec.behavior",
                json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}),
                &[
                    "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
                ],
            ),
        ],
    );
}

#[test]
fn autoscalers_name_the_group_of_their_target() {
    refused(
        autoscaling::autoscaler,
        &good_autoscaler(),
        &[
            (
                "spec.scaleTargetRef.apiVersion",
                Value::Null,
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
                ],
            ),
            (
                "spec.scaleTargetRef",
                json!({"kind": "Deployment", "name": "d", "apiVersion": "v1"}),
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
                ],
            ),
            (
                "spec.scaleTargetRef",
                json!({"kind": "ReplicationController", "name": "d"}),
                &[],
            ),
            (
                "spec.scaleTargetRef.apiVersion",
                json!("a/b/c"),
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                ],
            ),
        ],
    );
}

/// Autoscalers were made without an API version before it was asked for.
#[test]
fn autoscalers_may_keep_what_they_scale() {
    let old = json!({"spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d"}}});
    let changes = |path: &str, value: Value| {
        let mut changed = old.clone();
        set(&mut changed, path, value);
        messages(&found_in_change(
            autoscaling::changed_autoscaler,
            &changed,
            &old,
        ))
    };
    assert_eq!(changes("spec.scaleTargetRef.name", json!("e")), [""; 0]);
    assert_eq!(
        changes("spec.scaleTargetRef.kind", json!("StatefulSet")),
        ["spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group"]
    );
}

fn good_level() -> Value {
    json!({"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": {"type": "Queue",
            "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}}}})
}

#[test]
fn priority_levels_that_are_wrong() {
    refused(
        flowcontrol::priority_level,
        &good_level(),
        &[
            (
                "spec.type",
                Value::Null,
                &["spec.type: Unsupported value: \"\": supported values: \"Exempt\", \"Limited\""],
            ),
            (
                "spec.type",
                json!("Exempt"),
                &[
                    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                    "spec.limited: Forbidden: must be nil if the type is not Limited",
                ],
            ),
            (
                "spec.limited",
                Value::Null,
                &["spec.limited: Required value: must not be empty when type is Limited"],
            ),
            (
                "spec.limited.lendablePercent",
                json!(101),
                &[
                    "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                ],
            ),
        ],
    );
}

#[test]
fn mandatory_priority_levels_are_fixed() {
    let catch_all = json!({"metadata": {"name": "catch-all"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}}});
    refused(
        flowcontrol::priority_level,
        &catch_all,
        &[
            (
                "spec.limited.nominalConcurrencyShares",
                json!(6),
                &[
                    r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":6,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#,
                ],
            ),
            (
                "spec.limited.limitResponse",
                json!({"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}),
                &[
                    r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":5,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value"#,
                ],
            ),
        ],
    );
    let mut limited = catch_all.clone();
    set(&mut limited, "metadata.name", json!("exempt"));
    assert_eq!(
        messages(&found(flowcontrol::priority_level, &limited)),
        [
            "spec.type: Invalid value: \"Limited\": must be 'Exempt' if and only if `name` is 'exempt'",
            r#"spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":5,"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"#,
        ]
    );
    refused(
        flowcontrol::priority_level,
        &json!({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {
            "nominalConcurrencyShares": 7, "lendablePercent": 50}}}),
        &[],
    );
}

#[test]
fn priority_levels_that_queue_in_odd_ways() {
    refused(
        flowcontrol::priority_level,
        &good_level(),
        &[
            (
                "spec.limited.limitResponse.type",
                Value::Null,
                &[
                    "spec.limited.limitResponse.type: Unsupported value: \"\": supported values: \"Queue\", \"Reject\"",
                ],
            ),
            (
                "spec.limited.limitResponse.type",
                json!("Reject"),
                &[
                    "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                Value::Null,
                &[
                    "spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                json!({"queues": 10_000_001, "handSize": -1, "queueLengthLimit": -1}),
                &[
                    "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                    "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
                ],
            ),
            (
                "spec.limited.limitResponse.queuing",
                json!({"queues": 128, "handSize": 9, "queueLengthLimit": 1}),
                &[
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and handSize 9 should not be greater than 60",
                ],
            ),
        ],
    );
}

#[test]
fn roles_and_bindings_that_are_wrong() {
    let role = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    refused(
        access::role,
        &role,
        &[
            (
                "rules",
                json!([{}]),
                &[
                    "rules[0].verbs: Required value: verbs must contain at least one value",
                    "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                    "rules[0].resources: Required value: resource rules must supply at least one resource",
                ],
            ),
            (
                "rules",
                json!([{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
                &[
                    "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                ],
            ),
        ],
    );
    let binding = json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]});
    refused(
        access::role_binding,
        &binding,
        &[
            (
                "roleRef.kind",
                json!("Odd"),
                &[
                    "roleRef.kind: Unsupported value: \"Odd\": supported values: \"Role\", \"ClusterRole\"",
                ],
            ),
            (
                "subjects",
                json!([{"kind": "Odd"}]),
                &[
                    "subjects[0].name: Required value",
                    "subjects[0].kind: Unsupported value: \"Odd\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                ],
            ),
        ],
    );
    let mut other = binding.clone();
    set(&mut other, "roleRef.name", json!("s"));
    assert_eq!(
        messages(&found_in_change(access::binding_update, &other, &binding)),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"s\"}: cannot change roleRef"
        ]
    );
}

#[test]
fn kinds_of_the_cluster_that_are_wrong() {
    refused(
        cluster::disruption_budget,
        &json!({"spec": {"minAvailable": "50%", "selector": {}}}),
        &[
            (
                "spec.maxUnavailable",
                json!(1),
                &[
                    "spec: Invalid value: {\"MinAvailable\":\"50%\",\"Selector\":{},\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set",
                ],
            ),
            (
                "spec.minAvailable",
                json!("101%"),
                &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
            ),
        ],
    );
    refused(
        cluster::priority_class,
        &json!({"metadata": {"name": "a"}, "value": 1}),
        &[
            (
                "preemptionPolicy",
                json!(""),
                &["preemptionPolicy: Required value"],
            ),
            (
                "value",
                json!(1_000_000_001),
                &[
                    "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
                ],
            ),
            (
                "metadata.name",
                json!("system-x"),
                &[
                    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-x is not a known system priority class",
                ],
            ),
        ],
    );
    refused(
        cluster::lease,
        &json!({"spec": {"leaseDurationSeconds": 15}}),
        &[(
            "spec.leaseDurationSeconds",
            json!(0),
            &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        )],
    );
    refused(
        cluster::node,
        &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
        &[(
            "spec.taints",
            json!([{"key": "a", "effect": "Odd"}]),
            &[
                "metadata.taints[0].effect: Unsupported value: \"Odd\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ],
        )],
    );
}

#[test]
fn limits_and_quotas_that_are_wrong() {
    refused(
        quotas::limit_range,
        &json!({"spec": {"limits": [{"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}}]}}),
        &[
            (
                "spec.limits.0/min.cpu",
                json!("3"),
                &[
                    "spec.limits[0].min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 2",
                ],
            ),
            (
                "spec.limits.0/type",
                json!("Odd"),
                &[
                    "spec.limits[0].type: Invalid value: \"Odd\": must be a standard limit type or fully qualified",
                ],
            ),
        ],
    );
    refused(
        quotas::quota,
        &json!({"spec": {"hard": {"pods": "1", "count/x.example.com": "2"}}}),
        &[
            (
                "spec.hard",
                json!({"pots": "1"}),
                &[
                    "spec.hard[pots]: Invalid value: \"pots\": must be a standard resource type or fully qualified",
                    "spec.hard[pots]: Invalid value: \"pots\": must be a standard resource for quota",
                ],
            ),
            (
                "spec.hard",
                json!({"pods": "-1.5"}),
                &[
                    "spec.hard[pods]: Invalid value: \"-1.5\": must be greater than or equal to 0",
                    "spec.hard[pods]: Invalid value: \"-1.5\": must be an integer",
                ],
            ),
            (
                "spec.scopes",
                json!(["BestEffort", "NotBestEffort"]),
                &[
                    "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
                ],
            ),
        ],
    );
}

#[test]
fn slices_and_classes_that_are_wrong() {
    refused(
        endpoints::slice,
        &json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}],
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}]}),
        &[
            ("addressType", json!(""), &["addressType: Required value"]),
            (
                "endpoints",
                json!([{"addresses": ["::1"]}]),
                &[
                    "endpoints[0].addresses[0]: Invalid value: \"::1\": must be a valid IPv4 address",
                ],
            ),
        ],
    );
    let class = json!({"provisioner": "example.com/p", "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete"});
    refused(
        storage::storage_class,
        &class,
        &[
            ("provisioner", Value::Null, &["provisioner: Required value"]),
            ("reclaimPolicy", json!(""), &[]),
            (
                "volumeBindingMode",
                json!(""),
                &[
                    "volumeBindingMode: Unsupported value: \"\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
                ],
            ),
            (
                "reclaimPolicy",
                json!("Odd"),
                &[
                    "reclaimPolicy: Unsupported value: \"Odd\": supported values: \"Delete\", \"Retain\"",
                ],
            ),
        ],
    );
    let mut other = class.clone();
    set(&mut other, "provisioner", json!("p"));
    assert_eq!(
        messages(&found_in_change(
            storage::storage_class_update,
            &other,
            &class
        )),
        ["provisioner: Forbidden: updates to provisioner are forbidden."]
    );
}

#[test]
fn announcements_of_apis_that_are_wrong() {
    let good = json!({"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com",
        "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
        "caBundle": "eA==", "service": {"namespace": "n", "name": "s", "port": 443}}});
    refused(
        api_services::api_service,
        &good,
        &[
            (
                "spec.version",
                json!("v2"),
                &[
                    "metadata.name: Invalid value: \"v1.example.com\": must be `spec.version+\".\"+spec.group`: \"v2.example.com\"",
                ],
            ),
            (
                "spec.versionPriority",
                Value::Null,
                &["spec.versionPriority: Invalid value: 0: must be positive and less than 1000"],
            ),
            (
                "spec.service.name",
                Value::Null,
                &["spec.service.name: Required value"],
            ),
            (
                "spec.service.port",
                json!(0),
                &[
                    "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "spec.insecureSkipTLSVerify",
                json!(true),
                &[
                    "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
                ],
            ),
            (
                "spec.service",
                Value::Null,
                &[
                    "spec.caBundle: Invalid value: \"eA==\": local APIServices may not have a caBundle",
                ],
            ),
        ],
    );
}
