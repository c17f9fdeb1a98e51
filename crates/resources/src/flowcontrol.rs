//! The group `flowcontrol.apiserver.k8s.io`: FlowSchemas and PriorityLevelConfigurations.

mod defaults;
pub(crate) mod schema_validation;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_registry::subresource::SubresourceMetadata;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("flowcontrol.apiserver.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    let strategy = |rules| {
        Generic::with_status()
            .defaults(rules)
            .status_update(SubresourceMetadata::KeepsAll, schema_validation::status)
            .generation(&["spec"])
    };
    vec![
        V1.cluster("flowschemas", "FlowSchema").status().strategy(
            strategy(defaults::FLOW_SCHEMA)
                .names_on_update()
                .check(schema_validation::flow_schema),
        ),
        V1.cluster("prioritylevelconfigurations", "PriorityLevelConfiguration")
            .status()
            .strategy(
                strategy(defaults::PRIORITY_LEVEL)
                    .names_on_update()
                    .check(validation::priority_level),
            ),
    ]
}
