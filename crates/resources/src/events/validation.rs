//! Events of both groups. Paths in errors are those of the core's fields, also for clients of `events.k8s.io`.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::get;
use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use crate::validation::field::{Errors, Field};

const CHARACTERS_MAX: usize = 128;
const NOTE_CHARACTERS_MAX: usize = 1024;
const SERIES_MIN: i64 = 2;
/// The namespaces of events about cluster-scoped objects.
const ANYWHERE: [&str; 2] = ["default", "kube-system"];

/// The fields of an events.k8s.io Event that are immutable, of which Kubernetes looks at one twice.
const KEPT: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// The immutable fields of an events.k8s.io Event that are texts.
const TEXTS: [&str; 6] = [
    "reason",
    "message",
    "type",
    "action",
    "reportingComponent",
    "reportingInstance",
];

/// Checks an Event of either group. One with a time in microseconds names its reporter and action. Follows
/// `legacyValidateEvent` in pkg/apis/core/validation/events.go.
pub(crate) fn event(object: &Value, newer: bool) -> Errors {
    let root = Field::root(object);
    let own = root.at("metadata.namespace").text();
    let about = root.at("involvedObject.namespace");
    let timed = root.at("eventTime").is_set();
    let mut errors = Errors::new();
    let stands = if timed {
        !about.is_empty() || ANYWHERE.contains(&own)
    } else {
        own == about.text() || (about.is_empty() && own == "default")
    };
    if !stands {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(
            about.field(),
            &json!(about.text()),
            why,
        ));
    }
    if timed {
        let reporter = root.at("reportingComponent");
        let mut wrong = Errors::new();
        reporter.must_be_set(&mut wrong);
        reporter.must_conform(formats::label_key, &mut wrong);
        errors.extend(wrong.into_iter().map(|mut error| {
            if newer {
                error.field = "reportingController".to_owned();
            }
            error
        }));
        for member in ["reportingInstance", "action", "reason"] {
            root.at(member).must_be_set(&mut errors);
            short(&root.at(member), CHARACTERS_MAX, &mut errors);
        }
        short(&root.at("message"), NOTE_CHARACTERS_MAX, &mut errors);
    }
    errors
}

fn short(at: &Field<'_, '_>, characters_max: usize, errors: &mut Errors) {
    if at.text().len() > characters_max {
        let why = format!("can have at most {characters_max} characters");
        errors.push(at.invalid_value("", &why));
    }
}

/// Checks a new Event of events.k8s.io, which has none of the core fields. Follows `ValidateEventCreate` in
/// pkg/apis/core/validation/events.go.
pub(crate) fn new_event(object: &Value) -> Errors {
    let root = Field::root(object);
    let mut errors = Errors::new();
    errors.extend(series(&root));
    root.at("eventTime").must_be_set(&mut errors);
    let kind = root.at("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        let why = format!("has invalid value: {}", kind.text());
        errors.push(kind.invalid_value("", &why));
    }
    let count = root.at("count");
    let source = root.at("source");
    for (at, set) in [
        (
            root.at("firstTimestamp"),
            root.at("firstTimestamp").is_set(),
        ),
        (root.at("lastTimestamp"), root.at("lastTimestamp").is_set()),
        (count, count.number().is_some_and(|count| count != 0)),
        (source, !source.is_empty()),
    ] {
        if set {
            errors.push(at.invalid_value("", "needs to be unset"));
        }
    }
    errors
}

/// Checks an update of an Event of events.k8s.io: only its series changes. Follows `ValidateEventUpdate` in
/// pkg/apis/core/validation/events.go.
pub(crate) fn changed_event(object: &Value, old: &Value) -> Errors {
    let (root, before) = (Field::root(object), Field::root(old));
    let mut errors = Errors::new();
    if get(object, "series") != get(old, "series") {
        errors.extend(series(&root));
    }
    for member in KEPT {
        let mut wrong = Errors::new();
        let (now, old) = (root.at(member), before.at(member));
        if TEXTS.contains(&member) {
            now.must_stay_text(&old, &mut wrong);
        } else if member == "count" {
            let count = now.number().unwrap_or(0);
            if count != old.number().unwrap_or(0) {
                wrong.push(now.invalid_value(count, "field is immutable"));
            }
        } else {
            now.must_stay(&old, &mut wrong);
        }
        errors.extend(wrong.into_iter().map(|mut error| {
            if member == "reportingComponent" {
                error.field = "reportingController".to_owned();
            }
            error
        }));
    }
    errors
}

fn series(event: &Field<'_, '_>) -> Errors {
    let mut errors = Errors::new();
    let series = event.at("series");
    if series.is_set() {
        let count = series.at("count");
        if count.number().unwrap_or(0) < SERIES_MIN {
            errors.push(count.invalid_value("", "should be at least 2"));
        }
        series.at("lastObservedTime").must_be_set(&mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::messages;

    fn seen() -> Value {
        json!({"metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"namespace": "a"}, "type": "Normal",
            "eventTime": "2026-01-02T03:04:05.000000Z", "reportingComponent": "c", "reportingInstance": "i",
            "action": "Binding", "reason": "Scheduled"})
    }

    #[test]
    fn an_event_stands_beside_what_it_is_about() {
        let of = |own: &str, about: &str| json!({"metadata": {"namespace": own}, "involvedObject": {"namespace": about}});
        for (own, about, wrong) in [
            ("a", "a", 0),
            ("default", "", 0),
            ("kube-system", "", 1),
            ("a", "b", 1),
        ] {
            assert_eq!(event(&of(own, about), false).len(), wrong, "{own} {about}");
        }
        for (own, wrong) in [("default", 0), ("kube-system", 0), ("a", 1)] {
            let mut timed = seen();
            timed["metadata"]["namespace"] = json!(own);
            timed["involvedObject"]["namespace"] = json!("");
            assert_eq!(event(&timed, true).len(), wrong, "{own}");
        }
    }

    #[test]
    fn who_sees_something_says_what() {
        assert_eq!(event(&seen(), true), []);
        assert_eq!(new_event(&seen()), []);
        let mut unsigned = seen();
        unsigned["reportingComponent"] = json!("");
        unsigned["action"] = json!("");
        unsigned["reason"] = json!("r".repeat(129));
        let errors = event(&unsigned, true);
        let found = messages(&errors);
        for wrong in [
            "reportingController: Required value",
            "action: Required value",
            "reason: Invalid value: \"\": can have at most 128 characters",
        ] {
            assert!(found.iter().any(|it| it == wrong), "{wrong}: {found:?}");
        }
        let errors = new_event(
            &json!({"metadata": {"name": "e"}, "type": "Odd", "count": 1, "source": {"component": "c"},
            "firstTimestamp": "2026-01-02T03:04:05Z", "series": {"count": 1}}),
        );
        assert_eq!(
            messages(&errors),
            [
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: Odd",
                "firstTimestamp: Invalid value: \"\": needs to be unset",
                "count: Invalid value: \"\": needs to be unset",
                "source: Invalid value: \"\": needs to be unset",
            ]
        );
    }

    #[test]
    fn an_event_goes_on_as_a_series() {
        let mut on = seen();
        on["series"] = json!({"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"});
        assert_eq!(changed_event(&on, &seen()), []);
        on["reason"] = json!("Other");
        on["series"]["count"] = json!(0);
        assert_eq!(
            messages(&changed_event(&on, &seen())),
            [
                "series.count: Invalid value: \"\": should be at least 2",
                "reason: Invalid value: \"Other\": field is immutable",
                "reason: Invalid value: \"Other\": field is immutable",
            ]
        );
        let mut counted = seen();
        counted["count"] = json!(3);
        let change = messages(&changed_event(&seen(), &counted));
        assert_eq!(change, ["count: Invalid value: 0: field is immutable"]);
    }
}
