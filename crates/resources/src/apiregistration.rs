//! The group `apiregistration.k8s.io`: APIServices.

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;

use super::checks::api_services;
use super::defaults::admissionregistration as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("apiregistration.k8s.io", "v1")
            .cluster("apiservices", "APIService")
            .category("api-extensions")
            .prefix("apiregistration.k8s.io/apiservices")
            .status()
            .strategy(
                Generic::with_status()
                    .defaults(defaults::API_SERVICE)
                    .status_metadata(SubresourceMetadata::KeepsAll)
                    .name_rule(NameRule::PathSegment)
                    .check(api_services::api_service)
                    .conditional_update(),
            ),
    ]
}
