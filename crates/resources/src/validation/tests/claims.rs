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
