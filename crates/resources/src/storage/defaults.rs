//! Defaults of the groups `storage.k8s.io`, `scheduling.k8s.io`, `policy`, `node.k8s.io` and `resource.k8s.io`.
//!
//! Follows defaults.go in pkg/apis/storage/v1, pkg/apis/scheduling/v1 and pkg/apis/resource/v1, of Kubernetes 1.36.

use crate::defaults::Literal::{Empty, False, Int, Null, One, Text, True};
use crate::defaults::Rule::{self, In, Quantities, Set, When, Zero};

pub(crate) const STORAGE_CLASS: &[Rule] = &[
    Set("reclaimPolicy", Text("Delete")),
    Set("volumeBindingMode", Text("Immediate")),
];

pub(crate) const CSI_DRIVER: &[Rule] = &[
    Set("spec.attachRequired", True),
    Set("spec.podInfoOnMount", False),
    Set("spec.storageCapacity", False),
    Set("spec.fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    Set("spec.volumeLifecycleModes", One("Persistent")),
    Set("spec.requiresRepublish", False),
    Set("spec.seLinuxMount", False),
];

/// Defaults of RuntimeClasses: the overhead is rounded to thousandths.
pub(crate) const RUNTIME_CLASS: &[Rule] = &[Quantities("overhead.podFixed")];

pub(crate) const CSI_NODE: &[Rule] = &[Zero("spec.drivers", Null)];

pub(crate) const PRIORITY_CLASS: &[Rule] = &[
    Set("preemptionPolicy", Text("PreemptLowerPriority")),
    Zero("value", Int(0)),
];

pub(crate) const DISRUPTION_BUDGET: &[Rule] = &[Zero("spec", Empty)];

const EXACT_COUNT: &[Rule] = &[
    Set("allocationMode", Text("ExactCount")),
    When("allocationMode", &["ExactCount"], &[Set("count", Int(1))]),
    In("tolerations[]", TOLERATION),
];

const TOLERATION: &[Rule] = &[Set("operator", Text("Equal"))];

pub(crate) const RESOURCE_CLAIM: &[Rule] = &[
    Zero("spec", Empty),
    In("spec.devices.requests[].exactly", EXACT_COUNT),
    In("spec.devices.requests[].firstAvailable[]", EXACT_COUNT),
    In(
        "status.allocation.devices.results[].tolerations[]",
        TOLERATION,
    ),
];

pub(crate) const RESOURCE_CLAIM_TEMPLATE: &[Rule] = &[
    Zero("spec.metadata", Empty),
    Zero("spec.spec", Empty),
    In("spec.spec.devices.requests[].exactly", EXACT_COUNT),
    In("spec.spec.devices.requests[].firstAvailable[]", EXACT_COUNT),
];
