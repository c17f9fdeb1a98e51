//! The group `autoscaling`: HorizontalPodAutoscalers, which are served as v1 and v2 and stored as v2.

mod conversion;
mod defaults;
mod metrics;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::{Value, json};

use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};

const V2: RowGroup = RowGroup::new("autoscaling", "v2");
const V1: RowGroup = RowGroup::new("autoscaling", "v1");

/// The lists that get defaults if they are not there, and are refused if they are empty.
const POLICIES: &[&str] = &[
    "spec.behavior.scaleDown.policies",
    "spec.behavior.scaleUp.policies",
];

/// The behaviour of HorizontalPodAutoscalers: conversion between v1 and v2.
#[derive(Debug)]
struct Autoscalers {
    /// True if they are served as v1.
    old: bool,
}

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        autoscaler(V2, Autoscalers { old: false }),
        autoscaler(V1, Autoscalers { old: true }).stored_in(V2),
    ]
}

fn autoscaler(group: RowGroup, hooks: Autoscalers) -> RowBuilder {
    group
        .namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .category("all")
        .status()
        .strategy(
            Generic::with_status()
                .status_update(SubresourceMetadata::Free, validation::autoscaler_status)
                .defaults(if hooks.old {
                    defaults::OLDER_AUTOSCALER
                } else {
                    defaults::AUTOSCALER
                })
                .told_if_empty(if hooks.old { &[] } else { POLICIES })
                .check_on_create(validation::autoscaler)
                .check_on_update(validation::changed_autoscaler)
                .hooks(hooks)
                .initial_status(json!({"desiredReplicas": 0, "currentMetrics": null})),
        )
}

impl KindHooks for Autoscalers {
    /// Drops the annotations in which v1 has what v2 has fields for.
    fn default(&self, object: &mut Value) {
        conversion::drop_annotations(object);
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
    fn rules_in_an_annotation_get_no_defaults() {
        let behaviour = r#"{"ScaleDown":{"StabilizationWindowSeconds":5}}"#;
        let written = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": behaviour}},
            "spec": {"maxReplicas": 3}});
        let older = autoscaler(V1, Autoscalers { old: true }).done();
        let mut stored = older.strategy.to_stored(written);
        older.strategy.default(&mut stored);
        let rules = json!({"scaleDown": {"stabilizationWindowSeconds": 5}});
        assert_eq!(stored["spec"]["behavior"], rules);
        assert_eq!(stored["spec"]["minReplicas"], 1);
    }
}
