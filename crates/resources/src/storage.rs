//! The group `storage.k8s.io`: StorageClasses, VolumeAttachments and CSI drivers.

mod csi_driver;
pub(crate) mod defaults;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};
use serde_json::json;

use self::csi_driver::CsiDrivers;
use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::core::pod::warnings::node_labels;
use crate::core::volume;

const V1: RowGroup = RowGroup::new("storage.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        V1.cluster("csidrivers", "CSIDriver").strategy(
            Generic::new()
                .returns_deleted_object()
                .defaults(defaults::CSI_DRIVER)
                .check(validation::driver_kind)
                .check_on_update(validation::driver_update)
                .generation(&["spec"])
                .off(&["spec.preventPodSchedulingIfMissing"])
                .hooks(CsiDrivers)
                .conditional_update(),
        ),
        V1.cluster("csinodes", "CSINode").strategy(
            Generic::new()
                .names_on_update()
                .returns_deleted_object()
                .defaults(defaults::CSI_NODE)
                .managed_if_empty(&["spec.drivers"])
                .check(validation::drivers_of_node)
                .check_on_update(validation::drivers_of_node_update)
                .conditional_update(),
        ),
        V1.namespaced("csistoragecapacities", "CSIStorageCapacity")
            .strategy(
                Generic::new()
                    .names_on_update()
                    .check_on_create(validation::capacity_left)
                    .warn_always(node_labels::storage_capacity)
                    .check_on_update(validation::capacity_left_update)
                    .conditional_update(),
            ),
        V1.cluster("storageclasses", "StorageClass")
            .short(&["sc"])
            .strategy(
                Generic::new()
                    .names_on_update()
                    .returns_deleted_object()
                    .defaults(defaults::STORAGE_CLASS)
                    .judged_if_empty(&["parameters"])
                    .check(validation::storage_class)
                    .warn_always(node_labels::storage_class)
                    .check_on_update(validation::storage_class_update),
            ),
        V1.cluster("volumeattachments", "VolumeAttachment")
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .returns_deleted_object()
                    .defaults(volume::defaults::VOLUME_ATTACHMENT)
                    .initial_status(json!({"attached": false}))
                    .part("status", attachment_status())
                    .check(validation::attachment)
                    .check_on_update(validation::attachment_update)
                    .conditional_update(),
            ),
        V1.cluster("volumeattributesclasses", "VolumeAttributesClass")
            .short(&["vac"])
            .strategy(
                Generic::new()
                    .names_on_update()
                    .returns_deleted_object()
                    .check(validation::attributes_class)
                    .check_on_update(validation::attributes_class_update)
                    .changes_first(),
            ),
    ]
}

/// Returns the strategy of the status of VolumeAttachments. A write is checked as one of the whole object is, with its
/// names.
fn attachment_status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::KeepsAll)
        .name_rule(NameRule::DnsSubdomain)
        .validate_update(validation::attachment_status_update)
}
