//! The group `events.k8s.io`: the core's events in newer words.

use super::core;
use super::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("events.k8s.io", "v1")
            .namespaced("events", "Event")
            .short(&["ev"])
            .stored_in(core::V1)
            .fields(core::event_fields())
            .field_aliases(&[
                ("reason", "reason"),
                ("regarding.kind", "involvedObject.kind"),
                ("regarding.namespace", "involvedObject.namespace"),
                ("regarding.name", "involvedObject.name"),
                ("regarding.uid", "involvedObject.uid"),
                ("regarding.apiVersion", "involvedObject.apiVersion"),
                (
                    "regarding.resourceVersion",
                    "involvedObject.resourceVersion",
                ),
                ("regarding.fieldPath", "involvedObject.fieldPath"),
                ("reportingController", "reportingComponent"),
                ("type", "type"),
            ])
            .strategy(core::event_strategy()),
    ]
}
