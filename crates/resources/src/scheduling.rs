//! The group `scheduling.k8s.io`: PriorityClasses.
//!
//! Follows pkg/apis/scheduling/validation/validation.go and defaults.go in pkg/apis/scheduling/v1, of Kubernetes 1.36.

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::defaults::DefaultRule::{self, Set, Zero};
use crate::defaults::Literal::{Int, Text};
use crate::validation::field::{Errors, Field};

/// The greatest priority that a class of a user's own may have.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
/// The classes that every cluster has.
pub(crate) const SYSTEM_PRIORITIES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

const PRIORITY_CLASS: &[DefaultRule] = &[
    Set("preemptionPolicy", Text("PreemptLowerPriority")),
    Zero("value", Int(0)),
];

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("scheduling.k8s.io", "v1")
            .cluster("priorityclasses", "PriorityClass")
            .short(&["pc"])
            .strategy(
                Generic::new()
                    .defaults(PRIORITY_CLASS)
                    .check_on_create(priority_class)
                    .check_on_update(priority_class_update)
                    // It is 1 for ever: the value is immutable, and nothing else counts.
                    .generation(&["value"]),
            ),
    ]
}

/// Checks a PriorityClass. Follows `ValidatePriorityClass`.
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

/// Checks the preemption policy of a class. An empty one is an error.
fn preemption(object: &Field<'_, '_>, errors: &mut Errors) {
    let policy = object.at("preemptionPolicy");
    if policy.is_set() {
        policy.must_be_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

/// Checks an update of a PriorityClass: value and preemption policy are immutable. Follows
/// `ValidatePriorityClassUpdate`.
pub(crate) fn priority_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let number = |at: &Field<'_, '_>| at.at("value").number().unwrap_or(0);
    if number(object) != number(old) {
        errors.push(
            object
                .at("value")
                .forbidden("may not be changed in an update."),
        );
    }
    let policy = object.at("preemptionPolicy");
    policy.must_stay(&old.at("preemptionPolicy"), errors);
}
