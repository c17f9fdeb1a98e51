//! The group `resource.k8s.io`: dynamic resource allocation.

mod claim_validation;
mod defaults;
mod slice;
mod slice_validation;
pub(crate) mod table;

use ringwatch_registry::subresource::SubresourceMetadata;

use self::slice::ResourceSlices;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row, field};
use ringwatch_registry::subresource::SubresourceStrategy;

const V1: Group = Group::new("resource.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("deviceclasses", "DeviceClass").strategy(
            Generic::new()
                .returns_deleted_object()
                .generation(&["spec"]),
        ),
        V1.namespaced("resourceclaims", "ResourceClaim")
            .status()
            .strategy(
                Generic::with_status()
                    .returns_deleted_object()
                    .defaults(defaults::RESOURCE_CLAIM)
                    .check(claim_validation::claim)
                    .check_on_update(claim_validation::update)
                    .part(
                        "status",
                        SubresourceStrategy::new("status", SubresourceMetadata::Free)
                            .validate_update(claim_validation::status),
                    ),
            ),
        V1.namespaced("resourceclaimtemplates", "ResourceClaimTemplate")
            .strategy(
                Generic::new()
                    .returns_deleted_object()
                    .defaults(defaults::RESOURCE_CLAIM_TEMPLATE)
                    .check(claim_validation::template)
                    .check_on_update(claim_validation::update),
            ),
        V1.cluster("resourceslices", "ResourceSlice")
            .fields([field("spec.nodeName"), field("spec.driver")])
            .strategy(
                Generic::new()
                    .returns_deleted_object()
                    .generation(&["spec"])
                    .check_on_update(slice_validation::update)
                    .hooks(ResourceSlices),
            ),
    ]
}
