//! The group `storage.k8s.io`: kinds of volumes and who makes them.

use serde_json::json;

use super::generic::{Generic, PartMetadata};
use super::row::{Group, Row};

const V1: Group = Group::new("storage.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("csidrivers", "CSIDriver")
            .strategy(Generic::new().generation(&["spec"]).conditional_update()),
        V1.cluster("csinodes", "CSINode")
            .strategy(Generic::new().conditional_update()),
        V1.namespaced("csistoragecapacities", "CSIStorageCapacity")
            .strategy(Generic::new().conditional_update()),
        V1.cluster("storageclasses", "StorageClass").short(&["sc"]),
        V1.cluster("volumeattachments", "VolumeAttachment")
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"attached": false}))
                    .status_metadata(PartMetadata::KeepsAll)
                    .conditional_update(),
            ),
        V1.cluster("volumeattributesclasses", "VolumeAttributesClass")
            .short(&["vac"]),
    ]
}
