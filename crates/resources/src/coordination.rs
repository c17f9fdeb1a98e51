//! The group `coordination.k8s.io`: Leases, for leader election and heartbeats.

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
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && spec.at("strategy").is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}
