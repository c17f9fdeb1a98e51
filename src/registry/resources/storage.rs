//! The group `storage.k8s.io`: kinds of volumes and who makes them.

use serde_json::json;

use super::defaults::storage as defaults;
use super::generic::Generic;
use super::part::PartMetadata;
use super::row::{Group, Row};

const V1: Group = Group::new("storage.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("csidrivers", "CSIDriver").strategy(
            Generic::new()
                .defaults(defaults::CSI_DRIVER)
                .generation(&["spec"])
                .conditional_update(),
        ),
        V1.cluster("csinodes", "CSINode").strategy(
            Generic::new()
                .defaults(defaults::CSI_NODE)
                .conditional_update(),
        ),
        V1.namespaced("csistoragecapacities", "CSIStorageCapacity")
            .strategy(Generic::new().conditional_update()),
        V1.cluster("storageclasses", "StorageClass")
            .short(&["sc"])
            .strategy(Generic::new().defaults(defaults::STORAGE_CLASS)),
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
