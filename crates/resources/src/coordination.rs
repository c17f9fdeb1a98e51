//! The group `coordination.k8s.io`: Leases, for leader election and heartbeats.

use super::checks::cluster::lease;
use super::generic::Generic;
use super::row::{Group, Row};

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
