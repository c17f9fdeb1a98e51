//! The group `discovery.k8s.io`: EndpointSlices.

use super::core::endpoints::{slice, slice_update};
use super::networking::defaults;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("discovery.k8s.io", "v1")
            .namespaced("endpointslices", "EndpointSlice")
            .strategy(
                Generic::new()
                    .defaults(defaults::ENDPOINT_SLICE)
                    .check(slice)
                    .check_on_update(slice_update)
                    .generation(&["addressType", "endpoints", "ports", "metadata.labels"]),
            ),
    ]
}
