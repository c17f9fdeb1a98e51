//! The group `discovery.k8s.io`: EndpointSlices.

use super::core::endpoints::{slice, slice_endpoints, slice_update};
use super::networking::defaults;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};
use super::validation::Field;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("discovery.k8s.io", "v1")
            .namespaced("endpointslices", "EndpointSlice")
            .strategy(
                Generic::new()
                    .defaults(defaults::ENDPOINT_SLICE)
                    .check(slice)
                    .check_on_create(slice_endpoints)
                    .check_on_update(slice_update)
                    .warn(warn_of_names)
                    .generation(&["addressType", "endpoints", "ports", "metadata.labels"]),
            ),
    ]
}

/// Warns of slices of names (`warnOnDeprecatedAddressType` of `registry/discovery/endpointslice/strategy.go`, 1.36).
fn warn_of_names(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    if object.at("addressType").text() == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}
