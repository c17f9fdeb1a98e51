//! The group `storage.k8s.io`: StorageClasses, VolumeAttachments and CSI drivers.

use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::json;

use super::checks::storage as checks;
use super::csi_drivers::CsiDrivers;
use super::defaults::storage as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

const V1: Group = Group::new("storage.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("csidrivers", "CSIDriver").strategy(
            Generic::new()
                .defaults(defaults::CSI_DRIVER)
                .check(checks::driver_kind)
                .check_on_update(checks::driver_update)
                .generation(&["spec"])
                .hooks(CsiDrivers)
                .conditional_update(),
        ),
        V1.cluster("csinodes", "CSINode").strategy(
            Generic::new()
                .defaults(defaults::CSI_NODE)
                .check(checks::drivers_of_node)
                .check_on_update(checks::drivers_of_node_update)
                .conditional_update(),
        ),
        V1.namespaced("csistoragecapacities", "CSIStorageCapacity")
            .strategy(
                Generic::new()
                    .check(checks::capacity_left)
                    .check_on_update(checks::capacity_left_update)
                    .conditional_update(),
            ),
        V1.cluster("storageclasses", "StorageClass")
            .short(&["sc"])
            .strategy(
                Generic::new()
                    .defaults(defaults::STORAGE_CLASS)
                    .check(checks::storage_class)
                    .check_on_update(checks::storage_class_update),
            ),
        V1.cluster("volumeattachments", "VolumeAttachment")
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"attached": false}))
                    .status_metadata(SubresourceMetadata::KeepsAll)
                    .check(checks::attachment)
                    .check_on_update(checks::attachment_update)
                    .conditional_update(),
            ),
        V1.cluster("volumeattributesclasses", "VolumeAttributesClass")
            .short(&["vac"])
            .strategy(
                Generic::new()
                    .check(checks::attributes_class)
                    .check_on_update(checks::attributes_class_update),
            ),
    ]
}
