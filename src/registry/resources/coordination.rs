//! The group `coordination.k8s.io`: who leads, and who is alive.

use super::generic::Generic;
use super::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("coordination.k8s.io", "v1")
            .namespaced("leases", "Lease")
            .strategy(Generic::new().create_on_update().conditional_update()),
    ]
}
