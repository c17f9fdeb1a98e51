//! Defaults of the group `storage.k8s.io`.
//!
//! Follows defaults.go in pkg/apis/storage/v1, of Kubernetes 1.36.

use crate::defaults::DefaultRule::{self, Set, Zero};
use crate::defaults::Literal::{False, Null, One, Text, True};

pub(crate) const STORAGE_CLASS: &[DefaultRule] = &[
    Set("reclaimPolicy", Text("Delete")),
    Set("volumeBindingMode", Text("Immediate")),
];

pub(crate) const CSI_DRIVER: &[DefaultRule] = &[
    Set("spec.attachRequired", True),
    Set("spec.podInfoOnMount", False),
    Set("spec.storageCapacity", False),
    Set("spec.fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    Set("spec.volumeLifecycleModes", One("Persistent")),
    Set("spec.requiresRepublish", False),
    Set("spec.seLinuxMount", False),
];

pub(crate) const CSI_NODE: &[DefaultRule] = &[Zero("spec.drivers", Null)];
