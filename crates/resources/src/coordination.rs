//! The group `coordination.k8s.io`: Leases, for leader election and heartbeats.

use super::core::cluster::lease;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("coordination.k8s.io", "v1")
            .namespaced("leases", "Lease")
            .strategy(
                Generic::new()
                    .check(lease)
                    .create_on_update()
                    .conditional_update(),
            ),
    ]
}
