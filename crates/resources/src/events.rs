//! Events of the core group and of the group `events.k8s.io`, which names their fields differently. Both are stored in
//! the core's version and expire after a while.

pub(crate) mod table;
mod validation;

use ringwatch::meta::FieldPath;
use ringwatch_apimachinery::path::{get, remove, set};
use ringwatch_apimachinery::{FieldError, NameRule};
use ringwatch_registry::GarbageCollection;
use serde_json::{Value, json};

use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup, field};
use crate::defaults::DefaultRule::{self, Zero};
use crate::defaults::Literal::{Empty, Null, Text};

/// Members whose names differ: that of the core group, and that of `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The behaviour of events: conversion between the two groups, and stricter validation in the newer one.
#[derive(Debug)]
pub(super) struct Events {
    /// True if they are served in the group `events.k8s.io`.
    newer: bool,
}

/// Defaults of events, whose empty members are written nevertheless.
const EVENT: &[DefaultRule] = &[
    Zero("involvedObject", Empty),
    Zero("source", Empty),
    Zero("firstTimestamp", Null),
    Zero("lastTimestamp", Null),
    Zero("eventTime", Null),
    Zero("reportingComponent", Text("")),
    Zero("reportingInstance", Text("")),
];

impl Events {
    /// Events of the core group.
    pub(super) const CORE: Self = Self { newer: false };
    /// Events of the group `events.k8s.io`.
    const NEWER: Self = Self { newer: true };
}

impl KindHooks for Events {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validation::event(object, self.newer)
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        if self.newer {
            validation::new_event(object)
        } else {
            Vec::new()
        }
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        if self.newer {
            validation::changed_event(object, old)
        } else {
            Vec::new()
        }
    }

    fn to_served(&self, mut object: Value) -> Value {
        if self.newer {
            for (core, newer) in NAMES {
                rename(&mut object, core, newer);
            }
            set(&mut object, "apiVersion", "events.k8s.io/v1".into());
            // The newer group omits empty strings that the core group writes.
            for member in ["reportingController", "reportingInstance"] {
                if get(&object, member) == Some(&json!("")) {
                    drop(remove(&mut object, member));
                }
            }
        }
        object
    }

    fn to_stored(&self, mut object: Value) -> Value {
        if self.newer {
            for (core, newer) in NAMES {
                rename(&mut object, newer, core);
            }
            set(&mut object, "apiVersion", "v1".into());
        }
        object
    }

    fn converts(&self) -> bool {
        self.newer
    }
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(value) = remove(object, from) {
        set(object, to, value);
    }
}

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("events.k8s.io", "v1")
            .namespaced("events", "Event")
            .short(&["ev"])
            .stored_in(RowGroup::CORE_V1)
            .fields(fields())
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
            .strategy(strategy(Events::NEWER).name_rule(NameRule::DnsSubdomain)),
    ]
}

/// Returns the strategy of events, which both groups of events share but for `events`.
pub(super) fn strategy(events: Events) -> Generic {
    Generic::new()
        .defaults(EVENT)
        .hooks(events)
        .create_on_update()
        .name_rule(NameRule::PathSegment)
        .garbage_collection(GarbageCollection::Unsupported)
}

/// Returns the selectable fields of events, as the storage version names them.
pub(super) fn fields() -> [FieldPath; 11] {
    let mut source = field("source");
    source.from = &["source.component", "reportingComponent"];
    [
        field("involvedObject.kind"),
        field("involvedObject.namespace"),
        field("involvedObject.name"),
        field("involvedObject.uid"),
        field("involvedObject.apiVersion"),
        field("involvedObject.resourceVersion"),
        field("involvedObject.fieldPath"),
        field("reason"),
        field("reportingComponent"),
        source,
        field("type"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_say_the_same() {
        let stored = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"},
            "involvedObject": {"kind": "Pod", "name": "p1"}, "message": "ok", "reason": "Scheduled",
            "source": {"component": "s"}, "firstTimestamp": null, "lastTimestamp": null, "count": 1,
            "type": "Normal", "eventTime": null, "reportingComponent": "c", "reportingInstance": "i",
        });
        let served = Events::NEWER.to_served(stored.clone());
        assert_eq!(
            served,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e1"},
                "regarding": {"kind": "Pod", "name": "p1"}, "note": "ok", "reason": "Scheduled",
                "deprecatedSource": {"component": "s"}, "deprecatedFirstTimestamp": null,
                "deprecatedLastTimestamp": null, "deprecatedCount": 1, "type": "Normal",
                "eventTime": null, "reportingController": "c", "reportingInstance": "i",
            })
        );
        assert_eq!(Events::NEWER.to_stored(served), stored);
        assert_eq!(Events::CORE.to_served(stored.clone()), stored);
    }
}
