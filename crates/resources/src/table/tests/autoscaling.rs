//! Tests of the table of HorizontalPodAutoscalers.

use serde_json::{Value, json};

use super::cells;

#[test]
fn autoscalers_show_what_they_measure() {
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80}}});
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "1k"}}});
    let external = json!({"type": "External", "external": {"target": {"value": "30"}}});
    let object = json!({"type": "Object", "object": {"target": {"averageValue": "3"}}});
    let memory = json!({"type": "ContainerResource", "containerResource":
        {"name": "memory", "target": {"averageValue": "1Gi"}}});
    let measured = json!([{"resource": {"current": {"averageUtilization": 12}}},
        {"pods": {"current": {"averageValue": "900"}}}]);
    let shown = |metrics: &[&Value], current: &Value| {
        let autoscaler = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"},
            "minReplicas": 1, "maxReplicas": 4, "metrics": metrics},
            "status": {"currentReplicas": 2, "currentMetrics": current}});
        let found = cells("autoscaling", "HorizontalPodAutoscaler", autoscaler);
        assert_eq!(found[0], "Deployment/d");
        assert_eq!(
            json!(found.as_array().expect("cells")[2..]),
            json!(["1", 4, 2])
        );
        found[1].clone()
    };
    assert_eq!(shown(&[], &json!(null)), "<none>");
    assert_eq!(shown(&[&cpu, &pods], &measured), "cpu: 12%/80%, 900/1k");
    assert_eq!(shown(&[&cpu], &json!([])), "cpu: <unknown>/80%");
    assert_eq!(
        shown(&[&external, &object], &json!([])),
        "<unknown>/30, <unknown>/3 (avg)"
    );
    assert_eq!(
        shown(&[&memory, &cpu, &pods], &json!([])),
        "memory: <unknown>/1Gi, cpu: <unknown>/80% + 1 more..."
    );
}
