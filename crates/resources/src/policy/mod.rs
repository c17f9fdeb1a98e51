//! The group `policy`: PodDisruptionBudgets.

pub mod disruption_budget;

use serde_json::json;

use super::core::cluster::disruption_budget;
use super::storage::defaults;
use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    let status = json!({
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    });
    vec![
        Group::new("policy", "v1")
            .namespaced("poddisruptionbudgets", "PodDisruptionBudget")
            .short(&["pdb"])
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(status)
                    .defaults(defaults::DISRUPTION_BUDGET)
                    .check(disruption_budget)
                    .generation(&["spec"])
                    .conditional_update(),
            ),
    ]
}
