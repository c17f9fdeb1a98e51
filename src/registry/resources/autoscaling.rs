//! The group `autoscaling`: how many replicas there should be. Stored as v2.

use serde_json::json;

use super::defaults::autoscaling as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

const V2: Group = Group::new("autoscaling", "v2");
const V1: Group = Group::new("autoscaling", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![autoscaler(V2), autoscaler(V1).stored_in(V2)]
}

fn autoscaler(group: Group) -> Row {
    group
        .namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .category("all")
        .status()
        .strategy(
            Generic::with_status()
                .defaults(defaults::AUTOSCALER)
                .initial_status(json!({"desiredReplicas": 0, "currentMetrics": null})),
        )
}
