//! Nodes, namespaces, PriorityClasses, leases and PodDisruptionBudgets.

pub(crate) mod table;

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::pod::validation::scheduling::{at_most_all, taints};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::selector;
use crate::validation::quantities;
use crate::validation::values::cidr;

/// The greatest priority that a class of a user's own may have.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// The classes that every cluster has.
pub(crate) const SYSTEM_PRIORITIES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];
/// The finalizers of namespaces that need no prefix.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Checks a Node. Follows `ValidateNode` in pkg/apis/core/validation.
pub(crate) fn node(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut wrong = Errors::new();
    taints(&object.at("spec.taints"), &mut wrong);
    // Kubernetes takes them for metadata.
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = error.field.replacen("spec.", "metadata.", 1);
        error
    }));
    for list in ["status.capacity", "status.allocatable"] {
        for (resource, quantity) in object.members(list) {
            let mut wrong = Errors::new();
            quantities::amount(resource, &quantity, &mut wrong);
            errors.extend(wrong.into_iter().map(|mut error| {
                error.field = format!("{list}.{resource}");
                error
            }));
        }
    }
    let ranges = object.at("spec.podCIDRs");
    let mut seen = BTreeSet::new();
    for range in ranges.items("") {
        range.must_conform(cidr, errors);
        if !seen.insert(range.text()) {
            errors.push(range.duplicate());
        }
    }
}

/// Checks an update of a Node: most of what it has been given is immutable. Follows `ValidateNodeUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn node_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for address in object.items("status.addresses") {
        if !seen.insert(address.value().to_string()) {
            errors.push(address.duplicate());
        }
    }
    for (path, name) in [
        ("spec.podCIDRs", "podCIDR"),
        ("spec.providerID", "providerID"),
    ] {
        let (now, before) = (object.at(path), old.at(path));
        if !before.is_empty() && now.value() != before.value() {
            let why = format!("node updates may not change {name} except from \"\" to valid");
            errors.push(now.forbidden(why));
        }
    }
    let (now, before) = (object.at("spec.externalID"), old.at("spec.externalID"));
    if now.text() != before.text() {
        errors.push(now.forbidden("may not be updated"));
    }
}

/// Checks a Namespace, or its finalizers. Follows `ValidateNamespace` and `ValidateNamespaceFinalizeUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn namespace(object: &Field<'_, '_>, errors: &mut Errors) {
    let list = object.at("spec.finalizers");
    for finalizer in list.items("") {
        let text = finalizer.text();
        let wrong = formats::label_key(text).into_iter();
        errors.extend(wrong.map(|why| list.invalid_value(text, why)));
        if !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(list.invalid_value(text, why));
        }
    }
}

/// Checks the phase of a Namespace, which is Terminating if it is being deleted. Follows `ValidateNamespaceStatusUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn namespace_status(object: &Value, _old: &Value) -> Errors {
    let object = Field::root(object);
    let (goes, phase) = (
        object.at("metadata.deletionTimestamp"),
        object.at("status.phase"),
    );
    let (expected, why) = if goes.is_set() {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase.text() == expected {
        return Errors::new();
    }
    let mut error = phase.invalid(why);
    error.field = "status.Phase".to_owned();
    vec![error]
}

/// Checks a PriorityClass. Follows `ValidatePriorityClass` in pkg/apis/scheduling/validation.
pub(crate) fn priority_class(object: &Field<'_, '_>, errors: &mut Errors) {
    let (name, value) = (object.at("metadata.name"), object.at("value"));
    let number = value.number().unwrap_or(0);
    if name.text().starts_with(SYSTEM_PREFIX) {
        let known = SYSTEM_PRIORITIES
            .iter()
            .find(|(known, _)| *known == name.text());
        let global = object.at("globalDefault").is_true();
        let why = match known {
            None => format!("{} is not a known system priority class", name.text()),
            Some((name, value)) if *value != number => {
                format!("value of {name} PriorityClass must be {value}")
            }
            Some((name, _)) if global => {
                format!("globalDefault of {name} PriorityClass must be false")
            }
            Some(_) => return preemption(object, errors),
        };
        errors.push(name.forbidden(format!(
            "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
        )));
    } else if number > USER_PRIORITY_MAX {
        errors.push(value.forbidden(format!(
            "maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
        )));
    }
    preemption(object, errors);
}

/// The preemption policy of a class. An empty one is none.
fn preemption(object: &Field<'_, '_>, errors: &mut Errors) {
    let policy = object.at("preemptionPolicy");
    if policy.is_set() {
        policy.must_be_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

/// Checks an update of a PriorityClass: value and preemption policy are immutable. Follows `ValidatePriorityClassUpdate` in
/// pkg/apis/scheduling/validation.
pub(crate) fn priority_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let number = |at: &Field<'_, '_>| at.at("value").number().unwrap_or(0);
    if number(object) != number(old) {
        errors.push(
            object
                .at("Value")
                .forbidden("may not be changed in an update."),
        );
    }
    let policy = object.at("preemptionPolicy");
    policy.must_stay(&old.at("preemptionPolicy"), errors);
}

/// Checks a Lease. Follows `ValidateLease` in pkg/apis/coordination/validation.
pub(crate) fn lease(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let seconds = spec.at("leaseDurationSeconds");
    if seconds.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(seconds.invalid("must be greater than 0"));
    }
    spec.at("leaseTransitions").must_not_be_negative(errors);
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && spec.at("strategy").is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}

/// Checks a PodDisruptionBudget. Follows `ValidatePodDisruptionBudget` in pkg/apis/policy/validation.
pub(crate) fn disruption_budget(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let (least, most) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let mut error = spec.invalid("");
        // As Kubernetes shows its own type.
        error.detail = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable cannot be both set",
            least.value(),
            spec.at("selector").value(),
            most.value(),
            spec.at("unhealthyPodEvictionPolicy").value()
        );
        errors.push(error);
    }
    for count in [least, most] {
        count.must_be_a_count_or_percentage(errors);
        at_most_all(&count, errors);
    }
    selector(&spec.at("selector"), errors);
    spec.at("unhealthyPodEvictionPolicy")
        .may_be_one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}
