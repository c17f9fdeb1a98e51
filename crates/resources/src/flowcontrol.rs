//! The group `flowcontrol.apiserver.k8s.io`: FlowSchemas and PriorityLevelConfigurations.

use ringwatch_registry::subresource::SubresourceMetadata;

use super::checks::flowcontrol as checks;
use super::defaults::flowcontrol as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

const V1: Group = Group::new("flowcontrol.apiserver.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    let strategy = |rules| {
        Generic::with_status()
            .defaults(rules)
            .status_metadata(SubresourceMetadata::KeepsAll)
            .generation(&["spec"])
    };
    vec![
        V1.cluster("flowschemas", "FlowSchema")
            .status()
            .strategy(strategy(defaults::FLOW_SCHEMA)),
        V1.cluster("prioritylevelconfigurations", "PriorityLevelConfiguration")
            .status()
            .strategy(strategy(defaults::PRIORITY_LEVEL).check(checks::priority_level)),
    ]
}
