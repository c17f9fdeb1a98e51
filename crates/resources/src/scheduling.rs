//! The group `scheduling.k8s.io`: PriorityClasses.

use super::core::cluster::{priority_class, priority_class_update};
use super::storage::defaults;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("scheduling.k8s.io", "v1")
            .cluster("priorityclasses", "PriorityClass")
            .short(&["pc"])
            .strategy(
                Generic::new()
                    .defaults(defaults::PRIORITY_CLASS)
                    .check(priority_class)
                    .check_on_update(priority_class_update)
                    .generation(&["value", "globalDefault", "description", "preemptionPolicy"]),
            ),
    ]
}
