//! The names of the rules that objects of built-in kinds may have been stored before.
//!
//! Follows `GetValidationOptionsFromPodSpecAndMeta` in pkg/api/pod/util.go, and the options of volumes and claims in
//! pkg/apis/core/validation/validation.go of Kubernetes 1.36.

/// The cost of a pod's deletion is an integer.
pub(crate) const DELETION_COST: &str = "deletion cost";
/// Amounts of huge pages are whole pages.
pub(crate) const WHOLE_PAGES: &str = "whole pages";
/// Values of pods' labels in the affinity of a pod are values that labels may have.
pub(crate) const AFFINITY_VALUES: &str = "affinity values";
/// Values of nodes' labels that are required are values that labels may have.
pub(crate) const NODE_VALUES: &str = "node values";
/// Label selectors of topology spread constraints are valid.
pub(crate) const SPREAD_SELECTORS: &str = "spread selectors";
/// Tolerations do not compare numbers, which a feature that is off by default lets them do.
pub(crate) const NO_COMPARISON: &str = "no comparison";
/// The token of a service account is a file in its volume.
pub(crate) const TOKEN_PATHS: &str = "token paths";
/// Sysctls do not belong to a namespace that the pod shares with the host.
pub(crate) const HOST_SETTINGS: &str = "host settings";
/// Pods with their own user namespace have no block devices.
pub(crate) const DEVICES_OF_USERS: &str = "devices of users";
/// Pods with their own user namespace are not in the network of the host.
pub(crate) const NETWORK_OF_USERS: &str = "network of users";
/// Init containers that are no sidecars are not restarted for a resize.
pub(crate) const RESTART_FOR_RESIZE: &str = "restart for resize";
/// SELinux labels are set on the files of a volume, and not by mount options.
pub(crate) const RECURSIVE_LABELS: &str = "recursive labels";
/// Values in the selector of a claim are values that labels may have.
pub(crate) const CLAIM_VALUES: &str = "claim values";
/// The API group of a claim's source is a domain.
pub(crate) const SOURCE_GROUPS: &str = "source groups";
