//! Unknown fields at the top of an object.
//!
//! A table of the kinds whose top level is not just `spec` and `status` and whose fields are
//! certain. Other kinds, and everything below the top, wait for schemas.

use serde_json::{Map, Value};

use super::Expected;

/// The fields of every object.
const COMMON: &[&str] = &["kind", "apiVersion", "metadata"];

/// The fields of kinds that have a specification.
const SPEC: &[&str] = &["spec", "status"];

/// The fields of some kinds, by group and kind.
const FIELDS: &[(&str, &str, &[&str])] = &[
    ("", "ConfigMap", &["data", "binaryData", "immutable"]),
    ("", "Secret", &["data", "stringData", "type", "immutable"]),
    (
        "",
        "ServiceAccount",
        &[
            "secrets",
            "imagePullSecrets",
            "automountServiceAccountToken",
        ],
    ),
    ("", "Namespace", SPEC),
    ("", "Node", SPEC),
    ("", "PersistentVolume", SPEC),
    ("", "PersistentVolumeClaim", SPEC),
    ("", "Pod", SPEC),
    ("", "ReplicationController", SPEC),
    ("", "ResourceQuota", SPEC),
    ("", "Service", SPEC),
    ("apps", "DaemonSet", SPEC),
    ("apps", "Deployment", SPEC),
    ("apps", "ReplicaSet", SPEC),
    ("apps", "StatefulSet", SPEC),
    ("autoscaling", "Scale", SPEC),
    ("batch", "CronJob", SPEC),
    ("batch", "Job", SPEC),
    ("coordination.k8s.io", "Lease", &["spec"]),
    ("networking.k8s.io", "Ingress", SPEC),
    ("networking.k8s.io", "NetworkPolicy", &["spec"]),
    ("policy", "PodDisruptionBudget", SPEC),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        &["rules", "aggregationRule"],
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        &["subjects", "roleRef"],
    ),
    ("rbac.authorization.k8s.io", "Role", &["rules"]),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        &["subjects", "roleRef"],
    ),
];

/// Drops fields that the kind does not have, and says so.
pub(super) fn drop_unknown(
    object: &mut Map<String, Value>,
    expected: Expected<'_>,
    complaints: &mut Vec<String>,
) {
    let Some((_, _, fields)) = FIELDS
        .iter()
        .find(|(group, kind, _)| *group == expected.group_version.group && *kind == expected.kind)
    else {
        return;
    };
    object.retain(|name, _| {
        let known = COMMON.contains(&name.as_str()) || fields.contains(&name.as_str());
        if !known {
            complaints.push(format!("unknown field {name:?}"));
        }
        known
    });
}
