//! Checks of PodDisruptionBudgets.
//!
//! Follows pkg/apis/policy/validation/validation.go of Kubernetes 1.36.

use serde_json::Value;

use crate::core::pod::validation::scheduling::at_most_all;
use crate::validation::conditions::conditions;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{is_unreadable, selector_with, shown_selector};

/// Checks a new PodDisruptionBudget. Follows `ValidatePodDisruptionBudget`.
pub(crate) fn disruption_budget(object: &Field<'_, '_>, errors: &mut Errors) {
    budget_spec(&object.at("spec"), false, errors);
}

/// Checks an update of a PodDisruptionBudget, whose selector may have wrong values if it could not be read before.
pub(crate) fn disruption_budget_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let any_values = is_unreadable(&old.at("spec.selector"));
    budget_spec(&object.at("spec"), any_values, errors);
}

/// Checks the spec of a PodDisruptionBudget. Follows `ValidatePodDisruptionBudgetSpec`.
fn budget_spec(spec: &Field<'_, '_>, any_values: bool, errors: &mut Errors) {
    let (least, most) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let mut error = spec.invalid("");
        // As Kubernetes shows its own type.
        error.detail = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable cannot be both set",
            least.value(),
            if spec.at("selector").is_set() {
                shown_selector(spec.at("selector").value())
            } else {
                "null".to_owned()
            },
            most.value(),
            spec.at("unhealthyPodEvictionPolicy").value()
        );
        errors.push(error);
    }
    for count in [least, most] {
        count.must_be_a_count_or_percentage(errors);
        at_most_all(&count, errors);
    }
    selector_with(&spec.at("selector"), any_values, errors);
    spec.at("unhealthyPodEvictionPolicy")
        .may_be_one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}

/// Checks an update of the status of a PodDisruptionBudget. Follows `ValidatePodDisruptionBudgetStatusUpdate`.
pub(super) fn disruption_budget_status(object: &Value, _old: &Value) -> Errors {
    let object = Field::root(object);
    let status = object.at("status");
    let mut errors = Errors::new();
    conditions(&status.at("conditions"), &mut errors);
    for count in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        status.at(count).must_not_be_negative(&mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    #[test]
    fn a_status_has_conditions_and_counts() {
        let status = json!({"status": {"conditions": [{"type": "A", "status": "x", "reason": "R",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}], "expectedPods": -1, "currentHealthy": 3}});
        assert_eq!(
            messages(&disruption_budget_status(&status, &json!({}))),
            [
                "status.conditions[0].status: Unsupported value: \"x\": supported values: \"False\", \"True\", \"Unknown\"",
                "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
