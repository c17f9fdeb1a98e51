//! The group `autoscaling`: how many replicas there should be. Stored as v2.

mod conversion;
mod metrics;

use serde_json::{Value, json};

use super::defaults::autoscaling as defaults;
use super::generic::Generic;
use super::path::{get, text};
use super::peculiar::Peculiar;
use super::row::{Group, Row};
use crate::registry::FieldError;

const V2: Group = Group::new("autoscaling", "v2");
const V1: Group = Group::new("autoscaling", "v1");

/// What is peculiar about autoscalers.
#[derive(Debug)]
struct Autoscalers {
    /// Whether they are served in the old version.
    old: bool,
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        autoscaler(V2, Autoscalers { old: false }),
        autoscaler(V1, Autoscalers { old: true }).stored_in(V2),
    ]
}

fn autoscaler(group: Group, peculiar: Autoscalers) -> Row {
    group
        .namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .category("all")
        .status()
        .strategy(
            Generic::with_status()
                .defaults(defaults::AUTOSCALER)
                .peculiar(peculiar)
                .initial_status(json!({"desiredReplicas": 0, "currentMetrics": null})),
        )
}

impl Peculiar for Autoscalers {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let number = |path: &str| get(object, path).and_then(Value::as_i64);
        let (least, most) = (number("spec.minReplicas"), number("spec.maxReplicas"));
        if let Some(least) = least.filter(|least| *least < 1) {
            let why = "must be greater than or equal to 1";
            errors.push(FieldError::invalid("spec.minReplicas", &json!(least), why));
        }
        let most = most.unwrap_or(0);
        if most < 1 {
            let why = "must be greater than 0";
            errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), why));
        }
        if least.is_some_and(|least| most < least) {
            let why = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), why));
        }
        for member in ["kind", "name"] {
            let path = format!("spec.scaleTargetRef.{member}");
            if text(object, &path).is_empty() {
                errors.push(FieldError::required(path));
            }
        }
        errors
    }

    fn to_served(&self, object: Value) -> Value {
        if self.old {
            conversion::to_v1(object)
        } else {
            object
        }
    }

    fn to_stored(&self, object: Value) -> Value {
        if self.old {
            conversion::to_v2(object)
        } else {
            object
        }
    }

    fn converts(&self) -> bool {
        self.old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_target_are_checked() {
        let good = json!({"spec": {"minReplicas": 1, "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d"}}});
        let peculiar = Autoscalers { old: false };
        assert_eq!(peculiar.validate(&good), []);
        let bad = json!({"spec": {"minReplicas": 4, "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment"}}});
        let fields: Vec<_> = peculiar
            .validate(&bad)
            .into_iter()
            .map(|it| it.field)
            .collect();
        assert_eq!(fields, ["spec.maxReplicas", "spec.scaleTargetRef.name"]);
    }
}
