//! The group `admissionregistration.k8s.io`: who else has a say in writes.

use super::generic::{Generic, PartMetadata};
use super::row::{Group, Row};

const V1: Group = Group::new("admissionregistration.k8s.io", "v1");
/// In which kinds are stored that came to v1 with this release.
const V1BETA1: Group = Group::new("admissionregistration.k8s.io", "v1beta1");

pub(super) fn rows() -> Vec<Row> {
    let spec = || Generic::new().generation(&["spec"]).conditional_update();
    let webhooks = || {
        Generic::new()
            .generation(&["webhooks"])
            .conditional_update()
    };
    let rows = vec![
        V1.cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
            .stored_in(V1BETA1)
            .strategy(spec()),
        V1.cluster(
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
        )
        .stored_in(V1BETA1)
        .strategy(spec()),
        V1.cluster(
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
        )
        .strategy(webhooks()),
        V1.cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
            .status()
            .strategy(
                Generic::with_status()
                    .status_metadata(PartMetadata::KeepsAll)
                    .generation(&["spec"])
                    .conditional_update(),
            ),
        V1.cluster(
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
        )
        .strategy(spec()),
        V1.cluster(
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        )
        .strategy(webhooks()),
    ];
    rows.into_iter()
        .map(|row| row.category("api-extensions"))
        .collect()
}
