//! Refusals by the checks in `claims.rs`.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use super::refused;
use crate::validation::*;

fn good_claim() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "1Gi"}}}})
}

#[test]
fn claims_that_are_wrong() {
    refused(
        crate::core::volume::claim_validation::claim,
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
        messages(&found_in_change(
            crate::core::volume::claim_validation::claim_update,
            &new,
            &claim,
        ))
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
        crate::core::volume::persistent_volume_validation::volume,
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
                    "spec.capacity: Unsupported value: null: supported values: \"storage\"",
                ],
            ),
        ],
    );
    let mut moved = volume.clone();
    set(&mut moved, "spec.hostPath.path", json!("/y"));
    assert_eq!(
        messages(&found_in_change(
            crate::core::volume::persistent_volume_validation::volume_update,
            &moved,
            &volume
        )),
        [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@ -2,7 +2,7 @@\n  \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  \"HostPath\": {\n-  \"Path\": \"/x\",\n+  \"Path\": \"/y\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": null,\n"
        ]
    );
}

#[test]
fn volumes_that_are_wrong() {
    use crate::core::volume::persistent_volume_validation as checks;
    let volume = json!({"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "nfs": {"server": "s", "path": "/"},
        "persistentVolumeReclaimPolicy": "Recycle"}});
    refused(
        checks::volume,
        &volume,
        &[
            (
                "spec.capacity.storage",
                json!("-1500m"),
                &[
                    "spec.capacity[storage]: Invalid value: -2: must be a valid resource quantity",
                    "spec.capacity[storage]: Invalid value: \"-1500m\": must be greater than zero",
                ],
            ),
            (
                "spec.accessModes",
                json!(["ReadWriteOncePod", "Odd"]),
                &[
                    "spec.accessModes: Unsupported value: \"Odd\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                ],
            ),
            (
                "spec.accessModes",
                json!(["ReadWriteOncePod", "ReadWriteOnce"]),
                &[
                    "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
                ],
            ),
            (
                "spec.local",
                json!({"path": "/x"}),
                &["spec.local: Forbidden: may not specify more than 1 volume type"],
            ),
            (
                "spec",
                json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"}, "local": {"path": ""},
                    "csi": {"driver": "d"}}),
                &[
                    "spec.local.path: Required value",
                    "spec.nodeAffinity: Required value: Local volume requires node affinity",
                    "spec.csi: Forbidden: may not specify more than 1 volume type",
                ],
            ),
            (
                "spec",
                json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"},
                    "iscsi": {"initiatorName": "iqn.2001-04.com.example:a", "targetPortal": "x".repeat(63)}}),
                ISCSI,
            ),
            (
                "spec",
                json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"},
                    "hostPath": {"path": "/./", "type": ""}, "persistentVolumeReclaimPolicy": "Recycle"}),
                &[
                    "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
                ],
            ),
        ],
    );
}

#[test]
fn volumes_are_mounted_with_options_or_not() {
    let mut annotated = json!({"spec": {"nfs": {"server": "s", "path": "/"}}});
    annotated["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/mount-options": "ro"});
    let check = crate::core::volume::persistent_volume_validation::mount_options;
    assert_eq!(found(check, &annotated), []);
    annotated["spec"]["nfs"] = Value::Null;
    assert_eq!(
        messages(&found(check, &annotated)),
        [
            "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume type"
        ]
    );
}

const ISCSI: &[&str] = &[
    "spec.iscsi.targetportal: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
    "spec.iscsi.iqn: Required value",
];

#[test]
fn labels_of_the_nodes_of_a_volume_get_new_names() {
    let of = |key: &str| {
        let terms =
            json!([{"matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}]}]);
        json!({"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "nfs": {"server": "s", "path": "/"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})
    };
    let change = |new: &Value, old: &Value| {
        let check = crate::core::volume::persistent_volume_validation::volume_update;
        let errors = found_in_change(check, new, old);
        errors.into_iter().map(|it| it.field).collect::<Vec<_>>()
    };
    let (old, new) = ("beta.kubernetes.io/os", "kubernetes.io/os");
    assert_eq!(change(&of(new), &of(old)), [""; 0]);
    assert_eq!(change(&of(old), &of(new)), ["nodeAffinity"]);
    assert_eq!(
        change(&of("kubernetes.io/arch"), &of(old)),
        ["nodeAffinity"]
    );
}

#[test]
fn classes_of_claims_come_from_annotations() {
    let key = "volume.beta.kubernetes.io/storage-class";
    let of = |annotation: Option<&str>, class: Option<&str>| {
        let mut claim = good_claim();
        if let Some(annotation) = annotation {
            claim["metadata"] = json!({"annotations": {key: annotation}});
        }
        if let Some(class) = class {
            claim["spec"]["storageClassName"] = json!(class);
        }
        claim
    };
    let immutable = format!("metadata.annotations.{key}");
    let changed = [immutable.as_str()];
    for ((was, had), (is, has), fields) in [
        ((None, None), (None, Some("a")), &[][..]),
        ((None, Some("a")), (None, Some("b")), &["spec"]),
        ((Some("a"), None), (None, Some("a")), &[]),
        ((Some("a"), None), (Some("a"), Some("a")), &[]),
        ((Some("a"), None), (Some("b"), Some("a")), &changed),
        ((Some("a"), None), (Some("a"), Some("b")), &["spec"]),
        ((Some("a"), None), (None, None), &changed),
    ] {
        let check = crate::core::volume::claim_validation::claim_update;
        let errors = found_in_change(check, &of(is, has), &of(was, had));
        let found: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(found, fields, "{was:?} {had:?} {is:?} {has:?}");
    }
}

#[test]
fn a_claim_keeps_the_class_of_its_attributes() {
    let of = |class: Value| {
        let mut claim = good_claim();
        claim["status"] = json!({"phase": "Bound", "currentVolumeAttributesClassName": "a"});
        claim["spec"]["volumeAttributesClassName"] = class;
        claim
    };
    let old = of(json!("a"));
    for (class, what) in [
        (json!("b"), None),
        (json!(""), Some("empty string")),
        (Value::Null, Some("nil")),
    ] {
        let check = crate::core::volume::claim_validation::claim_update;
        let mut new = of(class.clone());
        if class.is_null() {
            drop(ringwatch_apimachinery::path::remove(
                &mut new,
                "spec.volumeAttributesClassName",
            ));
        }
        let expected: Vec<_> = what
            .map(|what| format!("spec.volumeAttributesClassName: Forbidden: update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"))
            .into_iter()
            .collect();
        assert_eq!(messages(&found_in_change(check, &new, &old)), expected);
    }
}

#[test]
fn claims_of_old_may_have_odd_groups_and_values() {
    let check = crate::core::volume::claim_validation::claim;
    let source = json!({"apiGroup": "A", "kind": "K", "name": "n"});
    for (member, value) in [
        ("dataSource", source),
        (
            "selector",
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}),
        ),
    ] {
        let mut claim = good_claim();
        claim["spec"][member] = value;
        assert_eq!(found_in_update(check, &claim, &good_claim()).len(), 1);
        assert_eq!(found_in_update(check, &claim, &claim), []);
    }
    let mut sources = good_claim();
    let kind = "PersistentVolumeClaim";
    sources["spec"]["dataSource"] = json!({"kind": kind, "name": "n"});
    sources["spec"]["dataSourceRef"] = json!({"apiGroup": "", "kind": kind, "name": "n"});
    assert_eq!(
        messages(&found(check, &sources)),
        ["spec: Invalid value: {}: must match dataSourceRef"]
    );
}

#[test]
fn claims_of_ephemeral_volumes_have_good_names() {
    let mut pod = super::good_pod();
    let template = json!({"spec": good_claim()["spec"]});
    pod["metadata"]["name"] = json!("p");
    pod["spec"]["volumes"][0] =
        json!({"name": "v", "ephemeral": {"volumeClaimTemplate": template}});
    pod["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"] = json!("p-v");
    let check = crate::core::pod::validation::pod;
    assert_eq!(
        messages(&found(check, &pod)),
        [
            "spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: \"p-v\": must not reference a PVC that gets created for an ephemeral volume"
        ]
    );
    let long = "x".repeat(252);
    pod["metadata"]["name"] = json!(long);
    pod["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"] = json!("c");
    let wrong = messages(&found(check, &pod));
    let named = format!(
        "spec.volumes[0].name: Invalid value: \"v\": PVC name \"{long}-v\": must be no more than 253 "
    );
    assert!(wrong[0].starts_with(&named), "{wrong:?}");
    assert_eq!(
        wrong[1..],
        ["spec.containers[0].volumeMounts[0].name: Not found: \"v\""]
    );
}
