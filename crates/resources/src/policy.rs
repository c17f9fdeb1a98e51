//! The group `policy`: PodDisruptionBudgets.

use serde_json::json;

use super::checks::cluster::disruption_budget;
use super::defaults::storage as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

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
