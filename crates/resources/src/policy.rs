//! The group `policy`: PodDisruptionBudgets.

pub mod disruption_budget;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::json;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::defaults::DefaultRule::{self, Zero};
use crate::defaults::Literal::Empty;

const DISRUPTION_BUDGET: &[DefaultRule] = &[Zero("spec", Empty)];

pub(super) fn rows() -> Vec<RowBuilder> {
    let status = json!({
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    });
    vec![
        RowGroup::new("policy", "v1")
            .namespaced("poddisruptionbudgets", "PodDisruptionBudget")
            .short(&["pdb"])
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .initial_status(status)
                    .status_update(
                        SubresourceMetadata::Free,
                        validation::disruption_budget_status,
                    )
                    .name_rule(NameRule::PathSegment)
                    .metadata_last()
                    .defaults(DISRUPTION_BUDGET)
                    .check_on_create(validation::disruption_budget)
                    .check_on_update(validation::disruption_budget_update)
                    .generation(&["spec"])
                    .conditional_update(),
            ),
    ]
}
