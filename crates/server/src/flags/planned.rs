//! Flags of kube-apiserver that are not supported yet: their names, one on each line.

/// The reason why these are refused.
pub(super) const REASON: &str = "it is not supported yet; leave it out";

/// The names, without dashes.
pub(super) const NAMES: &[&str] = &["encryption-provider-config-automatic-reload"];
