//! Conversion of HorizontalPodAutoscalers between v1 and v2. v1 has fields for CPU utilization alone; the rest is in
//! annotations, as in Kubernetes.

use ringwatch_apimachinery::path::{get, remove, set, text};
use serde_json::{Map, Value, json};

use super::metrics::{STATUS, Shapes, TARGET};
use super::{V1, V2};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotations that no version has beside its fields.
const DROPPED: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Order of members in Go's structs. No struct has two of these names in another order.
const ORDER: &[&str] = &[
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "metricName",
    "metricSelector",
    "kind",
    "name",
    "apiVersion",
    "targetAverageUtilization",
    "targetValue",
    "targetAverageValue",
    "currentAverageUtilization",
    "currentValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// Converts an autoscaler from v2 to v1.
pub(super) fn to_v1(mut object: Value) -> Value {
    let mut metrics = take_metrics(&mut object, "spec.metrics");
    let cpu = cpu_of(&metrics, &TARGET);
    if let Some((at, utilization)) = cpu {
        metrics.remove(at);
        set(
            &mut object,
            "spec.targetCPUUtilizationPercentage",
            utilization,
        );
    }
    annotate(&mut object, METRICS, &TARGET.all_to_v1(&metrics));
    // The annotation has all current metrics, since v1 has no field for the quantity of CPU.
    let metrics = take_metrics(&mut object, "status.currentMetrics");
    if let Some((_, utilization)) = cpu_of(&metrics, &STATUS) {
        set(
            &mut object,
            "status.currentCPUUtilizationPercentage",
            utilization,
        );
    }
    annotate(&mut object, CURRENT_METRICS, &STATUS.all_to_v1(&metrics));
    if let Some(conditions) = remove(&mut object, "status.conditions") {
        annotate(&mut object, CONDITIONS, &conditions);
    }
    if let Some(behavior) = remove(&mut object, "spec.behavior") {
        annotate(&mut object, BEHAVIOR, &spelt_out(rename(behavior, capital)));
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

/// Converts an autoscaler from v1 to v2. Annotations that cannot be decoded are dropped.
pub(super) fn to_v2(mut object: Value) -> Value {
    let cpu = remove(&mut object, "spec.targetCPUUtilizationPercentage");
    let cpu = cpu.filter(|it| !it.is_null());
    let others = unannotate(&mut object, METRICS);
    put_metrics(&mut object, "spec.metrics", cpu, others, &TARGET);
    let cpu = remove(&mut object, "status.currentCPUUtilizationPercentage");
    let all = unannotate(&mut object, CURRENT_METRICS);
    let cpu = cpu.filter(|_| all.is_none());
    put_metrics(&mut object, "status.currentMetrics", cpu, all, &STATUS);
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

/// Removes the list of metrics at a path and returns it.
fn take_metrics(object: &mut Value, path: &str) -> Vec<Value> {
    match remove(object, path) {
        Some(Value::Array(metrics)) => metrics,
        _ => Vec::new(),
    }
}

/// Returns the index of the CPU metric with a utilization, and that utilization.
fn cpu_of(metrics: &[Value], shapes: &Shapes) -> Option<(usize, Value)> {
    let utilization = |metric: &Value| {
        let is_cpu = text(metric, "resource.name") == "cpu";
        get(metric, shapes.utilization).filter(|_| is_cpu).cloned()
    };
    let mut all = metrics.iter().enumerate();
    all.find_map(|(at, metric)| Some((at, utilization(metric)?)))
}

/// Writes the metrics of an annotation, followed by that of the CPU.
fn put_metrics(
    object: &mut Value,
    path: &str,
    cpu: Option<Value>,
    others: Option<Value>,
    shapes: &Shapes,
) {
    let others = others.as_ref().and_then(Value::as_array);
    let others = others.into_iter().flatten();
    let mut metrics: Vec<_> = others.map(|metric| shapes.to_v2(metric)).collect();
    if let Some(utilization) = cpu {
        let mut metric = json!({"type": "Resource", "resource": {"name": "cpu"}});
        set(&mut metric, shapes.utilization, utilization);
        shapes.name_target(&mut metric);
        metrics.push(metric);
    }
    if !metrics.is_empty() {
        set(object, path, Value::Array(metrics));
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
            annotations.insert(key.to_owned(), escaped(in_order(value)).into());
        }
    }
}

/// Escapes characters in JSON that Go escapes and `serde_json` does not, since HTML and JavaScript give them a meaning.
/// They occur in strings only.
fn escaped(json: String) -> String {
    const ESCAPES: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    ESCAPES
        .iter()
        .fold(json, |json, (plain, escape)| json.replace(*plain, escape))
}

/// Writes a value as Go does: members in the order of Go's structs, and those of its one map by name, as `serde_json`
/// sorts them.
fn in_order(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Object(members) => {
            let place = |name: &str| ORDER.iter().position(|it| *it == name);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| place(name));
            let members = members.into_iter();
            let members = members.map(|(name, value)| match name.as_str() {
                "matchLabels" => format!("\"matchLabels\":{value}"),
                _ => format!("{}:{}", json!(name), in_order(value)),
            });
            format!("{{{}}}", joined(members.collect()))
        }
        Value::Array(items) => format!("[{}]", joined(items.iter().map(in_order).collect())),
        other => other.to_string(),
    }
}

/// Fills in `null` for members that `behavior` lacks, since Kubernetes' internal structs omit none.
fn spelt_out(mut behavior: Value) -> Value {
    const DIRECTIONS: [&str; 2] = ["ScaleUp", "ScaleDown"];
    const RULES: [&str; 4] = [
        "StabilizationWindowSeconds",
        "SelectPolicy",
        "Policies",
        "Tolerance",
    ];
    let name_all = |object: &mut Value, names: &[&str]| {
        for name in names {
            if let Some(members) = object.as_object_mut() {
                members.entry(*name).or_insert(Value::Null);
            }
        }
    };
    name_all(&mut behavior, &DIRECTIONS);
    for direction in DIRECTIONS {
        if let Some(rules) = behavior.get_mut(direction) {
            name_all(rules, &RULES);
        }
    }
    behavior
}

/// Drops the annotations in which v1 has what v2 has fields for. Follows
/// `DropRoundTripHorizontalPodAutoscalerAnnotations`.
pub(super) fn drop_annotations(object: &mut Value) {
    for key in DROPPED {
        drop(take_annotation(object, key));
    }
}

/// Removes an annotation and parses it as JSON.
fn unannotate(object: &mut Value, key: &str) -> Option<Value> {
    let text = take_annotation(object, key)?;
    serde_json::from_str(text.as_str()?).ok()
}

/// Removes an annotation, and the map of annotations if it was the last.
fn take_annotation(object: &mut Value, key: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(key)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Some(text)
}

/// Renames all members, since Kubernetes writes `behavior` to the annotation with the names of its internal structs.
fn rename(value: Value, name: fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
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
                    {"type": "Pods", "pods": {"metric": {"name": "m"},
                        "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service",
                        "name": "s"}, "metric": {"name": "m"},
                        "target": {"type": "Value", "value": "2"}}},
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50}}},
                ],
                "behavior": {"scaleUp": {"selectPolicy": "Max",
                    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
            },
            "status": {"currentReplicas": 1, "desiredReplicas": 2,
                "conditions": [{"type": "AbleToScale", "status": "True"}],
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "current": {"averageValue": "5", "averageUtilization": 7}}}]},
        });
        let v1 = to_v1(v2.clone());
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 7);
        assert_eq!(
            v1["metadata"]["annotations"][CURRENT_METRICS],
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7,"currentAverageValue":"5"}}]"#
        );
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(v1["spec"].get("metrics"), None);
        let annotations = &v1["metadata"]["annotations"];
        assert_eq!(
            annotations[METRICS],
            r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1k"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m","targetValue":"2"}}]"#
        );
        assert_eq!(
            annotations[BEHAVIOR],
            r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#
        );
        assert_eq!(to_v2(v1), v2);
    }

    #[test]
    fn annotations_of_the_older_version_are_dropped() {
        let mut v2 =
            json!({"metadata": {"annotations": {METRICS: "[]", CONDITIONS: "x", "a": "b"}}});
        drop_annotations(&mut v2);
        assert_eq!(v2, json!({"metadata": {"annotations": {"a": "b"}}}));
        let mut v2 = json!({"metadata": {"annotations": {BEHAVIOR: "{}"}}});
        drop_annotations(&mut v2);
        assert_eq!(v2, json!({"metadata": {}}));
    }

    #[test]
    fn nonsense_in_annotations_is_left_out() {
        let v1 = json!({"metadata": {"name": "a", "annotations": {METRICS: "{nonsense"}},
            "spec": {"maxReplicas": 1}});
        let v2 = to_v2(v1);
        assert_eq!(v2["metadata"], json!({"name": "a"}));
        assert_eq!(v2["spec"], json!({"maxReplicas": 1}));
    }

    #[test]
    fn annotations_are_written_as_go_writes_them() {
        let v2 = json!({
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "External", "external": {
                    "metric": {"name": "<m>&\u{2028}\u{2029}\u{7f}\u{1}é\"", "selector": {"matchLabels": {
                        "value": "1", "type": "2", "key": "3", "name": "4"}}},
                    "target": {"type": "Value", "value": "1"}}},
            ]},
        });
        let v1 = to_v1(v2.clone());
        assert_eq!(
            v1["metadata"]["annotations"][METRICS],
            format!(
                "{}\u{7f}{}",
                r#"[{"type":"External","external":{"metricName":"\u003cm\u003e\u0026\u2028\u2029"#,
                r#"\u0001é\"","metricSelector":{"matchLabels":{"key":"3","name":"4","type":"2","value":"1"}},"targetValue":"1"}}]"#
            )
        );
        assert_eq!(to_v2(v1)["spec"], v2["spec"]);
    }

    #[test]
    fn the_processor_comes_behind_the_metrics_of_the_annotation() {
        let v1 = json!({"metadata": {"name": "a", "annotations": {
                METRICS: r#"[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":1}}]"#}},
            "spec": {"maxReplicas": 1, "targetCPUUtilizationPercentage": 2}});
        let v2 = to_v2(v1);
        let names = v2["spec"]["metrics"].as_array().into_iter().flatten();
        let names: Vec<_> = names.map(|it| text(it, "resource.name")).collect();
        assert_eq!(names, ["memory", "cpu"]);
    }
}
