//! Defaults of the group `autoscaling`, in its storage version.
//!
//! Follows pkg/apis/autoscaling/v2/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use crate::defaults::DefaultRule::{self, Fill, In, Set, With};
use crate::defaults::Literal::{Empty, Int, Text};
use crate::defaults::is_absent;

/// Defaults of what is written as v1, which has rules for scaling in an annotation, as they are.
pub(crate) const OLDER_AUTOSCALER: &[DefaultRule] = &[
    Set("spec.minReplicas", Int(1)),
    Fill("spec.metrics", watch_the_processor),
];

pub(crate) const AUTOSCALER: &[DefaultRule] = &[
    Set("spec.minReplicas", Int(1)),
    Fill("spec.metrics", watch_the_processor),
    With(
        "spec.behavior",
        &[
            Set("spec.behavior.scaleUp", Empty),
            In("spec.behavior.scaleUp", SCALE_UP),
            Set("spec.behavior.scaleDown", Empty),
            In("spec.behavior.scaleDown", SCALE_DOWN),
        ],
    ),
];

const SCALE_UP: &[DefaultRule] = &[
    Set("stabilizationWindowSeconds", Int(0)),
    Set("selectPolicy", Text("Max")),
    Fill("policies", |rules| {
        policies(
            rules,
            json!([
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]),
        )
    }),
];

const SCALE_DOWN: &[DefaultRule] = &[
    Set("selectPolicy", Text("Max")),
    Fill("policies", |rules| {
        policies(
            rules,
            json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        )
    }),
];

/// Sets the metric of an autoscaler that has none: 80 % average utilization of the requested CPU.
fn watch_the_processor(autoscaler: &mut Value) {
    if is_absent(autoscaler, "spec.metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(autoscaler, "spec.metrics", json!([metric]));
    }
}

fn policies(rules: &mut Value, policies: Value) {
    if is_absent(rules, "policies") {
        set(rules, "policies", policies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::apply;

    #[test]
    fn an_autoscaler_is_completed() {
        let mut autoscaler = json!({"spec": {"maxReplicas": 3, "behavior": {"scaleUp": {
            "stabilizationWindowSeconds": 7}}}});
        apply(AUTOSCALER, &mut autoscaler);
        let spec = &autoscaler["spec"];
        assert_eq!(spec["minReplicas"], 1);
        assert_eq!(
            spec["metrics"][0]["resource"]["target"]["averageUtilization"],
            80
        );
        assert_eq!(spec["behavior"]["scaleUp"]["stabilizationWindowSeconds"], 7);
        assert_eq!(spec["behavior"]["scaleUp"]["policies"][0]["value"], 4);
        assert_eq!(spec["behavior"]["scaleDown"]["selectPolicy"], "Max");
    }
}
