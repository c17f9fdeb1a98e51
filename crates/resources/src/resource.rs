//! The group `resource.k8s.io`: dynamic resource allocation.

use ringwatch_registry::subresource::SubresourceMetadata;

use super::checks::{resource_claims as checks, resource_slices};
use super::defaults::storage as defaults;
use super::generic::Generic;
use super::resource_slices::ResourceSlices;
use super::row::{Group, Row, field};
use ringwatch_registry::subresource::SubresourceStrategy;

const V1: Group = Group::new("resource.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("deviceclasses", "DeviceClass")
            .strategy(Generic::new().generation(&["spec"])),
        V1.namespaced("resourceclaims", "ResourceClaim")
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::RESOURCE_CLAIM)
                    .check(checks::claim)
                    .check_on_update(checks::update)
                    .part(
                        "status",
                        SubresourceStrategy::new("status", SubresourceMetadata::Free)
                            .validate_update(checks::status),
                    ),
            ),
        V1.namespaced("resourceclaimtemplates", "ResourceClaimTemplate")
            .strategy(
                Generic::new()
                    .defaults(defaults::RESOURCE_CLAIM_TEMPLATE)
                    .check(checks::template)
                    .check_on_update(checks::update),
            ),
        V1.cluster("resourceslices", "ResourceSlice")
            .fields([field("spec.nodeName"), field("spec.driver")])
            .strategy(
                Generic::new()
                    .generation(&["spec"])
                    .check_on_update(resource_slices::update)
                    .hooks(ResourceSlices),
            ),
    ]
}
