//! Refusals by the checks in `autoscaling.rs`.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use super::refused;
use crate::validation::*;

fn good_autoscaler() -> Value {
    json!({"spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]}})
}

#[test]
fn autoscalers_that_are_wrong() {
    let good = good_autoscaler();
    refused(
        crate::autoscaling::validation::autoscaler,
        &good,
        &[
            (
                "spec.minReplicas",
                json!(4),
                &[
                    "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                "spec.minReplicas",
                json!(0),
                &[
                    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
                ],
            ),
            (
                "spec.maxReplicas",
                json!(0),
                &[
                    "spec.maxReplicas: Required value: must be set and greater than 0",
                    "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                ],
            ),
            (
                "spec.scaleTargetRef.name",
                Value::Null,
                &["spec.scaleTargetRef.name: Required value"],
            ),
            (
                "spec.metrics.0/resource.target",
                json!({"type": "Odd"}),
                &[
                    "spec.metrics[0].resource.target.type: Invalid value: \"Odd\": must be either Utilization, Value, or AverageValue",
                    "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
                ],
            ),
            (
                "spec.behavior",
                json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}),
                &[
                    "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
                ],
            ),
        ],
    );
}

#[test]
fn autoscalers_name_the_group_of_their_target() {
    refused(
        crate::autoscaling::validation::autoscaler,
        &good_autoscaler(),
        &[
            (
                "spec.scaleTargetRef.apiVersion",
                Value::Null,
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
                ],
            ),
            (
                "spec.scaleTargetRef",
                json!({"kind": "Deployment", "name": "d", "apiVersion": "v1"}),
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
                ],
            ),
            (
                "spec.scaleTargetRef",
                json!({"kind": "ReplicationController", "name": "d"}),
                &[],
            ),
            (
                "spec.scaleTargetRef.apiVersion",
                json!("a/b/c"),
                &[
                    "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                ],
            ),
        ],
    );
}

/// Autoscalers were made without an API version before one was required.
#[test]
fn autoscalers_may_keep_what_they_scale() {
    let old = json!({"spec": {"minReplicas": 1, "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d"}}});
    let changes = |path: &str, value: Value| {
        let mut changed = old.clone();
        set(&mut changed, path, value);
        messages(&found_in_change(
            crate::autoscaling::validation::changed_autoscaler,
            &changed,
            &old,
        ))
    };
    assert_eq!(changes("spec.scaleTargetRef.name", json!("e")), [""; 0]);
    assert_eq!(
        changes("spec.scaleTargetRef.kind", json!("StatefulSet")),
        ["spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group"]
    );
}
