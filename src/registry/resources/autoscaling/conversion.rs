//! The old version of autoscalers, which knows one metric. All else hides in annotations, where
//! Kubernetes puts it.

use serde_json::{Map, Value, json};

use super::super::path::{get, remove, set, text};
use super::metrics::{STATUS, Shapes, TARGET};
use super::{V1, V2};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// From v2 to v1.
pub(super) fn to_v1(mut object: Value) -> Value {
    let cpu = take_metrics(&mut object, "spec.metrics", METRICS, &TARGET);
    move_to(&mut object, cpu, "spec.targetCPUUtilizationPercentage");
    let cpu = take_metrics(
        &mut object,
        "status.currentMetrics",
        CURRENT_METRICS,
        &STATUS,
    );
    move_to(&mut object, cpu, "status.currentCPUUtilizationPercentage");
    if let Some(conditions) = remove(&mut object, "status.conditions") {
        annotate(&mut object, CONDITIONS, &conditions);
    }
    if let Some(behavior) = remove(&mut object, "spec.behavior") {
        annotate(&mut object, BEHAVIOR, &rename(behavior, capital));
    }
    for path in ["status.currentReplicas", "status.desiredReplicas"] {
        if get(&object, path).is_none() {
            set(&mut object, path, json!(0));
        }
    }
    set(
        &mut object,
        "apiVersion",
        V1.group_version().to_string().into(),
    );
    object
}

/// From v1 to v2. What is in an annotation and makes no sense is left out.
pub(super) fn to_v2(mut object: Value) -> Value {
    let cpu = remove(&mut object, "spec.targetCPUUtilizationPercentage");
    let others = unannotate(&mut object, METRICS);
    put_metrics(&mut object, "spec.metrics", cpu, others, &TARGET);
    let cpu = remove(&mut object, "status.currentCPUUtilizationPercentage");
    let others = unannotate(&mut object, CURRENT_METRICS);
    put_metrics(&mut object, "status.currentMetrics", cpu, others, &STATUS);
    if let Some(conditions) = unannotate(&mut object, CONDITIONS) {
        set(&mut object, "status.conditions", conditions);
    }
    if let Some(behavior) = unannotate(&mut object, BEHAVIOR) {
        set(&mut object, "spec.behavior", rename(behavior, small));
    }
    set(
        &mut object,
        "apiVersion",
        V2.group_version().to_string().into(),
    );
    object
}

/// Takes the metrics away: gives the utilization of the processor, annotates the rest.
fn take_metrics(
    object: &mut Value,
    path: &str,
    annotation: &str,
    shapes: &Shapes,
) -> Option<Value> {
    let Some(Value::Array(mut metrics)) = remove(object, path) else {
        return None;
    };
    let utilization = |metric: &Value| {
        (text(metric, "resource.name") == "cpu")
            .then(|| get(metric, shapes.utilization).cloned())
            .flatten()
    };
    let at = metrics
        .iter()
        .position(|metric| utilization(metric).is_some());
    let cpu = at.and_then(|at| utilization(&metrics.remove(at)));
    if !metrics.is_empty() {
        let old: Vec<Value> = metrics.iter().map(|metric| shapes.to_v1(metric)).collect();
        annotate(object, annotation, &Value::Array(old));
    }
    cpu
}

fn put_metrics(
    object: &mut Value,
    path: &str,
    cpu: Option<Value>,
    others: Option<Value>,
    shapes: &Shapes,
) {
    let mut metrics = Vec::new();
    if let Some(utilization) = cpu {
        let mut metric = json!({"type": "Resource", "resource": {"name": "cpu"}});
        set(&mut metric, shapes.utilization, utilization);
        shapes.name_target(&mut metric);
        metrics.push(metric);
    }
    let others = others.as_ref().and_then(Value::as_array);
    metrics.extend(
        others
            .into_iter()
            .flatten()
            .map(|metric| shapes.to_v2(metric)),
    );
    if !metrics.is_empty() {
        set(object, path, Value::Array(metrics));
    }
}

fn move_to(object: &mut Value, value: Option<Value>, path: &str) {
    if let Some(value) = value {
        set(object, path, value);
    }
}

fn annotate(object: &mut Value, key: &str, value: &Value) {
    let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let (false, Some(metadata)) = (empty, metadata) {
        let annotations = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(key.to_owned(), value.to_string().into());
        }
    }
}

/// Takes an annotation away and reads it.
fn unannotate(object: &mut Value, key: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(key)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

/// Renames all members: Kubernetes annotates behaviour with the names of its own structures.
fn rename(value: Value, name: fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (name(&key), rename(value, name)))
            .collect(),
        Value::Array(elements) => elements.into_iter().map(|it| rename(it, name)).collect(),
        other => other,
    }
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn small(name: &str) -> String {
    let mut chars = name.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_metric_is_plain() {
        let v1 = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        });
        let v2 = to_v2(v1.clone());
        assert_eq!(v2["apiVersion"], "autoscaling/v2");
        assert_eq!(
            v2["spec"]["metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}])
        );
        assert_eq!(to_v1(v2), v1);
    }

    #[test]
    fn everything_else_is_annotated_and_comes_back() {
        let v2 = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50}}},
                    {"type": "Pods", "pods": {"metric": {"name": "m"},
                        "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service",
                        "name": "s"}, "metric": {"name": "m"},
                        "target": {"type": "Value", "value": "2"}}},
                ],
                "behavior": {"scaleUp": {"selectPolicy": "Max",
                    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
            },
            "status": {"currentReplicas": 1, "desiredReplicas": 2,
                "conditions": [{"type": "AbleToScale", "status": "True"}],
                "currentMetrics": [{"type": "Resource", "resource": {"name": "memory",
                    "current": {"averageValue": "5", "averageUtilization": 7}}}]},
        });
        let v1 = to_v1(v2.clone());
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(v1["spec"].get("metrics"), None);
        let annotations = &v1["metadata"]["annotations"];
        assert_eq!(
            annotations[METRICS],
            r#"[{"pods":{"metricName":"m","targetAverageValue":"1k"},"type":"Pods"},{"object":{"metricName":"m","target":{"kind":"Service","name":"s"},"targetValue":"2"},"type":"Object"}]"#
        );
        let behavior = annotations[BEHAVIOR].as_str().expect("a text");
        assert!(behavior.contains("PeriodSeconds"), "{behavior}");
        assert_eq!(to_v2(v1), v2);
    }

    #[test]
    fn nonsense_in_annotations_is_left_out() {
        let v1 = json!({"metadata": {"name": "a", "annotations": {METRICS: "{nonsense"}},
            "spec": {"maxReplicas": 1}});
        let v2 = to_v2(v1);
        assert_eq!(v2["metadata"], json!({"name": "a"}));
        assert_eq!(v2["spec"], json!({"maxReplicas": 1}));
    }
}
