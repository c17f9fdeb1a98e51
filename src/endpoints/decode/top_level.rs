//! Unknown fields at the top of an object, and maps of texts that are something else.
//!
//! Two small tables of the kinds that people write by hand. Other kinds, and everything below the
//! top, wait for schemas.

use serde_json::{Map, Value};

use super::Expected;
use super::go_json::wrong;

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

/// The fields that are maps of texts, by kind of the core.
const TEXT_MAPS: &[(&str, &[&str])] = &[
    ("ConfigMap", &["data", "binaryData"]),
    ("Secret", &["data", "stringData"]),
];

/// Checks the types of the fields that are known to be maps.
///
/// # Errors
/// What Go says about a value of the wrong type.
pub(super) fn check_maps(
    object: &Map<String, Value>,
    expected: Expected<'_>,
) -> Result<(), String> {
    let kind = expected.kind;
    for name in SPEC {
        let value = object.get(*name).filter(|value| !value.is_null());
        if let Some(value) = value.filter(|value| !value.is_object()) {
            let version = &expected.group_version.version;
            let target = format!("{version}.{kind}{}{}", name[..1].to_uppercase(), &name[1..]);
            return Err(wrong(value, kind, name, &target));
        }
    }
    let core = expected.group_version.group.is_empty();
    let maps = TEXT_MAPS.iter().filter(|(known, _)| core && *known == kind);
    for name in maps.flat_map(|(_, names)| *names) {
        let Some(value) = object.get(*name).filter(|value| !value.is_null()) else {
            continue;
        };
        let Some(entries) = value.as_object() else {
            return Err(wrong(value, kind, name, "map[string]string"));
        };
        let entry = entries.values().find(|it| !it.is_string() && !it.is_null());
        if let Some(entry) = entry {
            return Err(wrong(entry, kind, name, "string"));
        }
    }
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::GroupVersion;

    #[test]
    fn maps_hold_texts() {
        let core = GroupVersion::new("", "v1");
        let error = |kind, object: Value| {
            let expected = Expected {
                group_version: &core,
                kind,
                strategy: None,
                custom: false,
            };
            let members = object.as_object().expect("an object");
            check_maps(members, expected).expect_err("wrong")
        };
        assert_eq!(
            error("ConfigMap", json!({"data": {"a": 1}})),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert_eq!(
            error("Pod", json!({"spec": "x"})),
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"
        );
    }
}
