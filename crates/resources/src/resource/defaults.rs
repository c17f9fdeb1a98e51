//! Defaults of the group `resource.k8s.io`.
//!
//! Follows defaults.go in pkg/apis/resource/v1, of Kubernetes 1.36.

use crate::defaults::DefaultRule::{self, In, Set, When, Zero};
use crate::defaults::Literal::{Empty, Int, Text};

const EXACT_COUNT: &[DefaultRule] = &[
    Set("allocationMode", Text("ExactCount")),
    When("allocationMode", &["ExactCount"], &[Set("count", Int(1))]),
    In("tolerations[]", TOLERATION),
];

const TOLERATION: &[DefaultRule] = &[Set("operator", Text("Equal"))];

pub(crate) const RESOURCE_CLAIM: &[DefaultRule] = &[
    Zero("spec", Empty),
    In("spec.devices.requests[].exactly", EXACT_COUNT),
    In("spec.devices.requests[].firstAvailable[]", EXACT_COUNT),
    In(
        "status.allocation.devices.results[].tolerations[]",
        TOLERATION,
    ),
];

pub(crate) const RESOURCE_CLAIM_TEMPLATE: &[DefaultRule] = &[
    Zero("spec.metadata", Empty),
    Zero("spec.spec", Empty),
    In("spec.spec.devices.requests[].exactly", EXACT_COUNT),
    In("spec.spec.devices.requests[].firstAvailable[]", EXACT_COUNT),
];
