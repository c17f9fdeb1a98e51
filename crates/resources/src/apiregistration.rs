//! The group `apiregistration.k8s.io`: APIServices.

pub(crate) mod registrations;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;

use super::admissionregistration::defaults;
use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("apiregistration.k8s.io", "v1")
            .cluster("apiservices", "APIService")
            .category("api-extensions")
            .prefix("apiregistration.k8s.io/apiservices")
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::API_SERVICE)
                    .status_metadata(SubresourceMetadata::KeepsAll)
                    .name_rule(NameRule::PathSegment)
                    .check(validation::api_service)
                    .conditional_update(),
            ),
    ]
}
