//! The group `coordination.k8s.io`: Leases, for leader election and heartbeats.

use ringwatch_apimachinery::validation::formats;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::validation::field::{Errors, Field};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("coordination.k8s.io", "v1")
            .namespaced("leases", "Lease")
            .strategy(
                Generic::new()
                    .check(lease)
                    .off(&["spec.strategy", "spec.preferredHolder"])
                    .create_on_update()
                    .conditional_update(),
            ),
    ]
}

/// Checks a Lease. Follows `ValidateLease` in pkg/apis/coordination/validation of Kubernetes 1.36.
pub(crate) fn lease(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let seconds = spec.at("leaseDurationSeconds");
    if seconds.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(seconds.invalid("must be greater than 0"));
    }
    spec.at("leaseTransitions").must_not_be_negative(errors);
    if spec.at("strategy").is_set() {
        strategy(&spec.at("strategy"), errors);
    }
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && spec.at("strategy").is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}

/// Checks the strategy by which a holder is chosen. Follows `ValidateCoordinatedLeaseStrategy`.
fn strategy(at: &Field<'_, '_>, errors: &mut Errors) {
    // Kubernetes has the member twice in the path.
    let named = at.at_named("", "strategy");
    let text = at.text();
    if text.contains('/') {
        let wrong = formats::label_key(text).into_iter();
        errors.extend(wrong.map(|why| named.invalid_value(text, why)));
    } else if text != "OldestEmulationVersion" {
        errors.push(named.unsupported_value(text, &["OldestEmulationVersion"]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn a_lease_has_a_strategy_that_is_known_or_qualified() {
        let wrong = |name: &str| messages(&found(lease, &json!({"spec": {"strategy": name}})));
        assert_eq!(wrong("OldestEmulationVersion"), [""; 0]);
        assert_eq!(wrong("example.com/Mine"), [""; 0]);
        assert_eq!(
            wrong("Odd"),
            [
                "spec.strategy.strategy: Unsupported value: \"Odd\": supported values: \"OldestEmulationVersion\""
            ]
        );
        assert_eq!(wrong("/x").len(), 1);
    }
}
