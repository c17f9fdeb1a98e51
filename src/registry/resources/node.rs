//! The group `node.k8s.io`: what containers run in.

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
                    .conditional_update(),
            ),
    ]
}
