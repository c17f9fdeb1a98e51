//! The group `flowcontrol.apiserver.k8s.io`: whose requests wait for whose.

use super::generic::{Generic, PartMetadata};
use super::row::{Group, Row};

const V1: Group = Group::new("flowcontrol.apiserver.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    let strategy = || {
        Generic::with_status()
            .status_metadata(PartMetadata::KeepsAll)
            .generation(&["spec"])
    };
    vec![
        V1.cluster("flowschemas", "FlowSchema")
            .status()
            .strategy(strategy()),
        V1.cluster("prioritylevelconfigurations", "PriorityLevelConfiguration")
            .status()
            .strategy(strategy()),
    ]
}
