//! Deployments, ReplicaSets, DaemonSets and ReplicationControllers, and what StatefulSets have in common with them.
//! Their selectors always select the pods of their templates.
//!
//! Follows pkg/apis/apps/validation/validation.go of Kubernetes 1.36.

use std::num::IntErrorKind;

use ringwatch_apimachinery::path::get;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use crate::core::pod::validation::scheduling::at_most_all;
use crate::core::pod::validation::{TemplateClaims, template};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{
    is_unreadable, selector, selector_by_later_rule, selects, selects_all, shown_selector,
};
use crate::validation::later_rules::AFFINITY_VALUES;
use crate::validation::values::percentage;

const BAD_SELECTOR: &str = "invalid label selector";
const MISMATCH: &str = "`selector` does not match template `labels`";

/// Checks a Deployment. Follows `ValidateDeploymentSpec`.
pub(crate) fn deployment(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("replicas").must_not_be_negative(errors);
    if own_selector(
        &spec,
        "empty selector is invalid for deployment",
        BAD_SELECTOR,
        errors,
    ) {
        running_template(&spec, "ReplicaSet", errors);
    }
    let strategy = spec.at("strategy");
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            rolling.must_be_unset(why, errors);
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            unavailable.must_be_a_count_or_percentage(errors);
            surge.must_be_a_count_or_percentage(errors);
            if !is_some(&unavailable) && !is_some(&surge) {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(&unavailable, errors);
        }
        _ => errors.push(unsupported_strategy(
            &strategy,
            &["maxUnavailable", "maxSurge"],
            &["Recreate", "RollingUpdate"],
        )),
    }
    spec.at("minReadySeconds").must_not_be_negative(errors);
    spec.at("revisionHistoryLimit").must_not_be_negative(errors);
    let deadline = spec.at("progressDeadlineSeconds");
    deadline.must_not_be_negative(errors);
    let ready = spec.at("minReadySeconds").number().unwrap_or(0);
    if deadline.number().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

/// Checks a ReplicaSet. Follows `ValidateReplicaSetSpec`.
pub(crate) fn replica_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("replicas").must_not_be_negative(errors);
    spec.at("minReadySeconds").must_not_be_negative(errors);
    if own_selector(
        &spec,
        "empty selector is invalid for deployment",
        BAD_SELECTOR,
        errors,
    ) {
        running_template(&spec, "ReplicaSet", errors);
    }
}

/// Checks a DaemonSet. Follows `ValidateDaemonSetSpec`.
pub(crate) fn daemon_set(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let own = spec.at("selector");
    // Wrong values may stay if they are anywhere in the object, as in the affinity of its pods.
    selector_by_later_rule(&own, AFFINITY_VALUES, errors);
    if own.is_set() && selects_all(own.value()) {
        errors.push(own.invalid("empty selector is invalid for daemonset"));
    }
    if is_unreadable(&own) {
        template_that_runs(&spec, "DaemonSet", errors);
    } else {
        running_template(&spec, "DaemonSet", errors);
    }
    spec.at("minReadySeconds").must_not_be_negative(errors);
    let strategy = spec.at("updateStrategy");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => one_of_both(&strategy.at("rollingUpdate"), errors),
        _ => errors.push(unsupported_strategy(
            &strategy,
            &["maxUnavailable", "maxSurge"],
            &["RollingUpdate", "OnDelete"],
        )),
    }
    spec.at("revisionHistoryLimit").must_not_be_negative(errors);
}

/// Checks that exactly one of `maxUnavailable` and `maxSurge` is greater than zero.
fn one_of_both(rolling: &Field<'_, '_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
    for count in [unavailable, surge] {
        count.must_be_a_count_or_percentage(errors);
    }
    for count in [unavailable, surge] {
        at_most_all(&count, errors);
    }
    match (is_some(&unavailable), is_some(&surge)) {
        (true, true) => {
            errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
        }
        (false, false) => {
            errors.push(unavailable.required("cannot be 0 when maxSurge is 0"));
        }
        _ => {}
    }
}

/// Checks a ReplicationController, whose selector is a map. Follows `ValidateReplicationControllerSpec` in
/// pkg/apis/core/validation.
pub(crate) fn replication_controller(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    spec.at("minReadySeconds").must_not_be_negative(errors);
    let own = spec.at("selector");
    own.must_be_set(errors);
    spec.at("replicas").must_not_be_negative(errors);
    if !spec.at("template").is_set() {
        errors.push(spec.at("template").required(""));
        return;
    }
    if !own.is_empty() && !selects(&json!({"matchLabels": own.value()}), labels_of(&spec)) {
        errors.push(mismatch(&spec));
    }
    template_that_runs(&spec, "ReplicationController", errors);
}

/// Checks that a selector is unchanged.
pub(crate) fn selector_stays(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let own = object.at("spec.selector");
    own.must_stay(&old.at("spec.selector"), errors);
}

/// Checks that there is a selector, and that it is not empty. Returns false if it cannot be read, in which case the
/// template is not looked at.
pub(super) fn own_selector(
    spec: &Field<'_, '_>,
    empty: &str,
    unreadable: &str,
    errors: &mut Errors,
) -> bool {
    let own = spec.at("selector");
    if !own.is_set() {
        errors.push(own.required(""));
        return true;
    }
    let before = errors.len();
    selector(&own, errors);
    let is_readable = errors.len() == before;
    if selects_all(own.value()) {
        errors.push(own.invalid(empty));
    }
    if !is_readable {
        let shown = shown_selector(own.value());
        let why = match unreadable {
            "" => shown,
            _ => format!("{shown}: {unreadable}"),
        };
        errors.push(FieldError::new(FieldErrorKind::Invalid, own.field(), why));
    }
    is_readable
}

/// Checks that the labels of the template match the selector, and that its pods keep running.
fn running_template(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    matches_own_labels(spec, errors);
    template_that_runs(spec, kind, errors);
}

/// Checks that the labels of the template match the selector.
pub(super) fn matches_own_labels(spec: &Field<'_, '_>, errors: &mut Errors) {
    let own = spec.at("selector").value();
    // Nothing is selected without a selector.
    if own.is_null() || !selects_all(own) && !selects(own, labels_of(spec)) {
        errors.push(mismatch(spec));
    }
}

fn template_that_runs(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    template(&spec.at("template"), &TemplateClaims::new(), errors);
    keeps_running(spec, kind, errors);
}

/// Checks that the pods of the template run until they are deleted.
pub(super) fn keeps_running(spec: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let pods = spec.at("template");
    let policy = pods.at("spec.restartPolicy");
    if policy.is_set() {
        policy.must_be_one_of(&["Always"], errors);
    }
    let why = format!("activeDeadlineSeconds in {kind} is not Supported");
    pods.at("spec.activeDeadlineSeconds")
        .must_be_unset(&why, errors);
}

fn labels_of<'v>(spec: &Field<'v, '_>) -> &'v Value {
    get(spec.value(), "template.metadata.labels").unwrap_or(&Value::Null)
}

fn mismatch(spec: &Field<'_, '_>) -> FieldError {
    let blamed = spec.at("template.metadata.labels");
    blamed.invalid_value(labels_of(spec).clone(), MISMATCH)
}

/// Returns the error about a strategy of an unknown type, which these members describe further.
fn unsupported_strategy(
    strategy: &Field<'_, '_>,
    members: &[&str],
    supported: &[&str],
) -> FieldError {
    let mut error = strategy.unsupported(supported);
    let quoted: Vec<String> = supported.iter().map(|it| json!(it).to_string()).collect();
    error.detail = format!(
        "{}: supported values: {}",
        shown_strategy(strategy, members),
        quoted.join(", ")
    );
    error
}

/// Returns a strategy as Go writes Kubernetes' internal type, which errors show.
pub(super) fn shown_strategy(strategy: &Field<'_, '_>, members: &[&str]) -> String {
    let rolling = strategy.at("rollingUpdate");
    let member = |name: &&str| {
        let (first, rest) = name.split_at(1);
        let value = rolling.at(name).value();
        let shown = match (*name, value) {
            ("partition", Value::Null) => &json!(0),
            (_, value) => value,
        };
        format!("\"{}{rest}\":{shown}", first.to_uppercase())
    };
    let shown = if rolling.is_set() {
        let members: Vec<String> = members.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    } else {
        "null".to_owned()
    };
    let kind = json!(strategy.at("type").text());
    format!("{{\"Type\":{kind},\"RollingUpdate\":{shown}}}")
}

/// Returns true if a number or percentage is not zero. A text that is neither counts as its number. Follows
/// `getIntOrPercentValue`, to which a number of too many digits is one.
pub(super) fn is_some(count: &Field<'_, '_>) -> bool {
    let text = count.text();
    let digits = match percentage(text).as_slice() {
        [] => text.trim_end_matches('%'),
        _ => text,
    };
    match digits.parse::<i64>() {
        _ if !count.value().is_string() => count.number().unwrap_or(0) != 0,
        Ok(number) => number != 0,
        Err(error) => matches!(
            error.kind(),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow
        ),
    }
}

/// Checks a ControllerRevision. Follows `validateControllerRevision`.
pub(crate) fn revision(object: &Field<'_, '_>, errors: &mut Errors) {
    object.at("revision").must_not_be_negative(errors);
}

/// Checks the data of a new ControllerRevision, an object of any form. Follows `ValidateControllerRevisionCreate`.
pub(crate) fn revision_data(object: &Field<'_, '_>, errors: &mut Errors) {
    let data = object.at("data");
    if !data.is_set() {
        errors.push(data.required("data is mandatory"));
    } else if !data.value().is_object() {
        errors.push(data.required("data must be a valid JSON object"));
    }
}

/// Checks an update of a ControllerRevision: its data is immutable. Follows `ValidateControllerRevisionUpdate`.
pub(crate) fn revision_stays(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    object.at("data").must_stay(&old.at("data"), errors);
}
