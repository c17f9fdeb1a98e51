//! Checks of PodDisruptionBudgets.
//!
//! Follows pkg/apis/policy/validation/validation.go of Kubernetes 1.36.

use crate::core::pod::validation::scheduling::at_most_all;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::selector;

/// Checks a PodDisruptionBudget. Follows `ValidatePodDisruptionBudget`.
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
