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

fn metric(metric: Value) -> Vec<String> {
    let mut autoscaler = good_autoscaler();
    set(&mut autoscaler, "spec.metrics", json!([metric]));
    let found = found(crate::autoscaling::validation::autoscaler, &autoscaler);
    messages(&found)
}

#[test]
fn a_metric_has_one_source_of_its_type() {
    let target = json!({"type": "AverageValue", "averageValue": "1"});
    let pods = json!({"metric": {"name": "m"}, "target": target});
    let at = "spec.metrics[0]";
    assert_eq!(
        metric(json!({"type": "External", "pods": pods})),
        [format!(
            "{at}.external: Required value: must populate information for the given metric source"
        )]
    );
    // Of several sources the first one is looked at.
    let container = json!({"name": "cpu", "container": "A", "target": target});
    assert_eq!(
        metric(json!({"type": "Pods", "pods": pods, "containerResource": container})),
        [format!(
            "{at}.containerResource: Forbidden: must populate the given metric source only"
        )]
    );
    assert_eq!(
        metric(json!({"type": "Odd", "pods": {"target": target}, "external": {}})),
        [
            format!(
                "{at}.type: Unsupported value: \"Odd\": supported values: \"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\""
            ),
            format!("{at}.external.metric.name: Required value: must specify a metric name"),
            format!("{at}.external.target.type: Required value: must specify a metric target type"),
            format!(
                "{at}.external.target.type: Invalid value: \"\": must be either Utilization, Value, or AverageValue"
            ),
            format!(
                "{at}.external.target.averageValue: Required value: must set either a target value for metric or a per-pod target"
            ),
            format!("{at}.external: Forbidden: must populate the given metric source only"),
            format!("{at}.pods: Forbidden: must populate the given metric source only"),
        ]
    );
    let mut zero = pods.clone();
    zero["target"]["averageValue"] = json!("0");
    assert_eq!(
        metric(json!({"type": "Pods", "pods": zero})),
        [format!(
            "{at}.pods.target.averageValue: Invalid value: \"0\": must be positive"
        )]
    );
}

#[test]
fn a_tolerance_is_not_negative() {
    let rules =
        json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}], "tolerance": "-1m"});
    let mut autoscaler = good_autoscaler();
    set(&mut autoscaler, "spec.behavior.scaleDown", rules);
    let found = found(crate::autoscaling::validation::autoscaler, &autoscaler);
    assert_eq!(
        messages(&found),
        [
            "spec.behavior.scaleDown.tolerance: Invalid value: \"-1m\": must be greater than or equal to 0"
        ]
    );
}

/// Autoscalers were made that scale to nothing where the feature was on.
#[test]
fn autoscalers_may_go_on_scaling_to_nothing() {
    use crate::autoscaling::validation::changed_autoscaler;
    let mut old = good_autoscaler();
    let external = json!({"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}});
    let metrics = json!([{"type": "External", "external": external}]);
    set(&mut old, "spec.metrics", metrics);
    let none = {
        let mut none = old.clone();
        set(&mut none, "spec.minReplicas", json!(0));
        none
    };
    let changed = |new: &Value, old: &Value| {
        let found = found_in_change(changed_autoscaler, new, old);
        messages(&found)
    };
    let why = "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1";
    assert_eq!(changed(&none, &old), [why]);
    assert_eq!(changed(&none, &none), [""; 0]);
    let mut less = none.clone();
    set(&mut less, "spec.minReplicas", json!(-1));
    let why = "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(changed(&less, &none), [why]);
}

#[test]
fn counts_of_the_status_are_not_negative() {
    let status = json!({"status": {"currentReplicas": -1, "desiredReplicas": -2}});
    let found = crate::autoscaling::validation::autoscaler_status(&status, &Value::Null);
    assert_eq!(
        messages(&found),
        [
            "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
            "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0",
        ]
    );
}
