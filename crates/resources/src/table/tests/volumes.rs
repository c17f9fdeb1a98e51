//! Tests of the tables of PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSI objects.

use serde_json::json;

use super::{NOW, cells, row};

#[test]
fn volumes_show_their_claims_and_classes() {
    let volume = json!({"metadata": {}, "spec": {"capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "ns", "name": "c"}, "storageClassName": "fast", "volumeMode": "Block"},
        "status": {"phase": "Bound"}});
    assert_eq!(
        cells("", "PersistentVolume", volume),
        json!([
            "5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "<unset>", "", "Block"
        ])
    );
    let claim = json!({"metadata": {"deletionTimestamp": NOW, "annotations":
            {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"volumeName": "v", "storageClassName": "new"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"]}});
    assert_eq!(
        cells("", "PersistentVolumeClaim", claim),
        json!([
            "Terminating",
            "v",
            "1Gi",
            "RWOP",
            "old",
            "<unset>",
            "<unset>"
        ])
    );
    let pending = json!({"spec": {}, "status": {"phase": "Pending"}});
    assert_eq!(
        cells("", "PersistentVolumeClaim", pending),
        json!(["Pending", "", "", "", "", "<unset>", "<unset>"])
    );
    let class = json!({"metadata": {"name": "std", "annotations":
        {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"});
    assert_eq!(
        json!(row("storage.k8s.io", "StorageClass", &class).cells),
        json!([
            "std (default)",
            "p",
            "Delete",
            "Immediate",
            false,
            "<unknown>"
        ])
    );
}

#[test]
fn storage_shows_its_drivers() {
    let group = "storage.k8s.io";
    let driver = json!({"spec": {"podInfoOnMount": true, "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}]}});
    assert_eq!(
        cells(group, "CSIDriver", driver),
        json!([true, true, false, "a,b", false, "Persistent,Ephemeral"])
    );
    assert_eq!(
        cells(
            group,
            "CSIDriver",
            json!({"spec": {"attachRequired": false}})
        ),
        json!([false, false, false, "<unset>", false, "<none>"])
    );
    assert_eq!(
        cells(group, "CSINode", json!({"spec": {"drivers": [{}]}})),
        json!([1])
    );
    let room = json!({"storageClassName": "fast", "capacity": "1Gi"});
    assert_eq!(
        cells(group, "CSIStorageCapacity", room),
        json!(["2026-11-22T11:55:00Z"]),
        "kube-apiserver has no columns of its own for it"
    );
    let attachment = json!({"spec": {"attacher": "a", "nodeName": "n",
        "source": {"persistentVolumeName": "v"}}, "status": {"attached": true}});
    assert_eq!(
        cells(group, "VolumeAttachment", attachment),
        json!(["a", "v", "n", true])
    );
    let class = json!({"driverName": "d"});
    assert_eq!(cells(group, "VolumeAttributesClass", class), json!(["d"]));
}
