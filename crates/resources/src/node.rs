//! The group `node.k8s.io`: RuntimeClasses.

use super::checks::storage as checks;
use super::defaults::storage as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("node.k8s.io", "v1")
            .cluster("runtimeclasses", "RuntimeClass")
            .strategy(
                Generic::new()
                    .defaults(defaults::RUNTIME_CLASS)
                    .check(checks::runtime_class)
                    .check_on_update(checks::runtime_class_update)
                    .conditional_update(),
            ),
    ]
}
