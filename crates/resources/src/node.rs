//! The group `node.k8s.io`: RuntimeClasses.

use super::storage::defaults;
use super::storage::validation;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("node.k8s.io", "v1")
            .cluster("runtimeclasses", "RuntimeClass")
            .strategy(
                Generic::new()
                    .defaults(defaults::RUNTIME_CLASS)
                    .check(validation::runtime_class)
                    .check_on_update(validation::runtime_class_update)
                    .conditional_update(),
            ),
    ]
}
