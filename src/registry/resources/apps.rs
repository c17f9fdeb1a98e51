//! The group `apps`: controllers of pods.

use serde_json::json;

use super::generic::{Generic, PartMetadata};
use super::row::{Group, Row, field_or};
use crate::registry::SelectorForm;

const V1: Group = Group::new("apps", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.namespaced("controllerrevisions", "ControllerRevision"),
        V1.namespaced("daemonsets", "DaemonSet")
            .short(&["ds"])
            .category("all")
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({
                        "currentNumberScheduled": 0,
                        "desiredNumberScheduled": 0,
                        "numberMisscheduled": 0,
                        "numberReady": 0,
                    }))
                    .generation(&["spec"]),
            ),
        V1.namespaced("deployments", "Deployment")
            .short(&["deploy"])
            .category("all")
            .scale(SelectorForm::LabelSelector)
            .status()
            .strategy(
                Generic::with_status()
                    .status_metadata(PartMetadata::KeepsLabels)
                    .generation(&["spec", "metadata.annotations"]),
            ),
        V1.namespaced("replicasets", "ReplicaSet")
            .short(&["rs"])
            .category("all")
            .fields([field_or("status.replicas", "0")])
            .scale(SelectorForm::LabelSelector)
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"replicas": 0}))
                    .generation(&["spec"]),
            ),
        V1.namespaced("statefulsets", "StatefulSet")
            .short(&["sts"])
            .category("all")
            .scale(SelectorForm::LabelSelector)
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"replicas": 0, "availableReplicas": 0}))
                    .generation(&["spec"]),
            ),
    ]
}
