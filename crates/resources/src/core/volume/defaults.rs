//! Defaults of the volumes of pods, of PersistentVolumes and of PersistentVolumeClaims.
//!
//! Follows `SetDefaults_Volume` and its neighbours in pkg/apis/core/v1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::set;
use serde_json::Value;

use crate::core::field_reference::FIELD_REF;
use crate::core::image::fill_pull_policy;
use crate::defaults::DefaultRule::{self, In, Quantities, Run, Set, Zero};
use crate::defaults::Literal::{Empty, False, Int, Text};

/// Default permissions of files: 0644.
const FILE_MODE: DefaultRule = Set("defaultMode", Int(0o644));

/// Defaults of a volume of a pod.
pub(crate) const VOLUME: &[DefaultRule] = &[
    Run(&[], begin_empty),
    In("secret", &[FILE_MODE]),
    In("configMap", &[FILE_MODE]),
    In(
        "downwardAPI",
        &[FILE_MODE, In("items[].fieldRef", FIELD_REF)],
    ),
    In("projected", PROJECTED),
    In(
        "image",
        &[Run(&["pullPolicy"], |image| {
            fill_pull_policy(image, "pullPolicy", "reference")
        })],
    ),
    In("hostPath", &[Set("type", Text(""))]),
    In("iscsi", &[Set("iscsiInterface", Text("default"))]),
    In("rbd", RBD),
    In("azureDisk", AZURE_DISK),
    In("scaleIO", SCALE_IO),
    In(
        "ephemeral.volumeClaimTemplate",
        &[Set("metadata", Empty), In("spec", CLAIM_SPEC)],
    ),
];

const PROJECTED: &[DefaultRule] = &[
    FILE_MODE,
    In(
        "sources[].serviceAccountToken",
        &[Set("expirationSeconds", Int(3600))],
    ),
    In("sources[].downwardAPI.items[].fieldRef", FIELD_REF),
];

const RBD: &[DefaultRule] = &[
    Set("pool", Text("rbd")),
    Set("user", Text("admin")),
    Set("keyring", Text("/etc/ceph/keyring")),
];

const AZURE_DISK: &[DefaultRule] = &[
    Set("cachingMode", Text("ReadWrite")),
    Set("kind", Text("Shared")),
    Set("fsType", Text("ext4")),
    Set("readOnly", False),
];

const SCALE_IO: &[DefaultRule] = &[
    Set("storageMode", Text("ThinProvisioned")),
    Set("fsType", Text("xfs")),
];

/// Defaults of the spec of a PersistentVolumeClaim.
const CLAIM_SPEC: &[DefaultRule] = &[
    Set("volumeMode", Text("Filesystem")),
    Quantities("resources.limits"),
    Quantities("resources.requests"),
    Zero("resources", Empty),
];

/// Defaults of PersistentVolumeClaims.
pub(crate) const CLAIM: &[DefaultRule] = &[
    Set("spec", Empty),
    In("spec", CLAIM_SPEC),
    Set("status.phase", Text("Pending")),
    Quantities("status.capacity"),
    Quantities("status.allocatedResources"),
];

/// Defaults of PersistentVolumes, whose sources have those of a pod's volumes.
pub(crate) const PERSISTENT_VOLUME: &[DefaultRule] = &[
    Set("spec.persistentVolumeReclaimPolicy", Text("Retain")),
    Set("spec.volumeMode", Text("Filesystem")),
    Set("status.phase", Text("Pending")),
    In("spec", PERSISTENT_SOURCE),
];

/// Defaults of a VolumeAttachment, which can have the spec of a PersistentVolume, but gets only those of its source.
pub(crate) const VOLUME_ATTACHMENT: &[DefaultRule] =
    &[In("spec.source.inlineVolumeSpec", PERSISTENT_SOURCE)];

/// Defaults of the capacity and the source in the spec of a PersistentVolume.
const PERSISTENT_SOURCE: &[DefaultRule] = &[
    Quantities("capacity"),
    In("hostPath", &[Set("type", Text(""))]),
    In("iscsi", &[Set("iscsiInterface", Text("default"))]),
    In("rbd", RBD),
    In("azureDisk", AZURE_DISK),
    In("scaleIO", SCALE_IO),
];

/// Makes a volume without a source an `emptyDir`.
fn begin_empty(volume: &mut Value) {
    let named_only = volume
        .as_object()
        .is_some_and(|members| members.keys().all(|name| name == "name"));
    if named_only {
        set(volume, "emptyDir", Value::Object(serde_json::Map::new()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::defaults::apply;

    #[test]
    fn volumes_are_completed() {
        let mut pod = json!({"volumes": [
            {"name": "a"},
            {"name": "b", "configMap": {"name": "x"}},
            {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "image": {"reference": "i:1"}},
        ]});
        apply(&[In("volumes[]", VOLUME)], &mut pod);
        assert_eq!(
            pod["volumes"],
            json!([
                {"name": "a", "emptyDir": {}},
                {"name": "b", "configMap": {"name": "x", "defaultMode": 420}},
                {"name": "c", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}},
                {"name": "d", "image": {"reference": "i:1", "pullPolicy": "IfNotPresent"}},
            ])
        );
    }
}
