//! The group `resource.k8s.io`: dynamic resource allocation.

mod claim_validation;
mod class_validation;
mod deallocation;
mod defaults;
mod device_validation;
mod limits;
mod request_policy;
mod selector_expressions;
mod slice;
mod slice_validation;
mod status_validation;
pub(crate) mod table;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};

use self::slice::ResourceSlices;
use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup, field, indexed_field};

const V1: RowGroup = RowGroup::new("resource.k8s.io", "v1");

/// The behaviour of kinds that select devices by expressions.
#[derive(Debug)]
struct Selecting;

impl KindHooks for Selecting {
    /// Checking an expression takes long for its size.
    fn is_costly(&self) -> bool {
        true
    }
}

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        V1.cluster("deviceclasses", "DeviceClass").strategy(
            Generic::new()
                .name_rule(NameRule::GeneratedDnsSubdomain)
                .returns_deleted_object()
                .hooks(Selecting)
                .check_on_create(class_validation::class)
                .check_on_update(class_validation::changed_class)
                .generation(&["spec"]),
        ),
        V1.namespaced("resourceclaims", "ResourceClaim")
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .returns_deleted_object()
                    .defaults(defaults::RESOURCE_CLAIM)
                    .hooks(Selecting)
                    .check_on_create(claim_validation::claim)
                    .check_on_update(claim_validation::update)
                    .part(
                        "status",
                        SubresourceStrategy::new("status", SubresourceMetadata::KeepsAll)
                            .finish(|_, claim, old| deallocation::drop_statuses(claim, old))
                            .validate_update(status_validation::status),
                    ),
            ),
        V1.namespaced("resourceclaimtemplates", "ResourceClaimTemplate")
            .strategy(
                Generic::new()
                    .names_on_update()
                    .returns_deleted_object()
                    .defaults(defaults::RESOURCE_CLAIM_TEMPLATE)
                    .hooks(Selecting)
                    .check(claim_validation::template)
                    .check_on_update(claim_validation::update),
            ),
        V1.cluster("resourceslices", "ResourceSlice")
            .fields([indexed_field("spec.nodeName"), field("spec.driver")])
            .strategy(
                Generic::new()
                    .returns_deleted_object()
                    .generation(&["spec"])
                    .check_on_create(slice_validation::slice)
                    .check_on_update(slice_validation::changed_slice)
                    .told_if_empty(&[
                        "spec.devices",
                        "spec.nodeSelector.nodeSelectorTerms",
                        "spec.sharedCounters",
                    ])
                    .hooks(ResourceSlices),
            ),
    ]
}
