//! Flags of kube-apiserver that are not supported yet: their names, one on each line.

/// The reason why these are refused.
pub(super) const REASON: &str = "it is not supported yet; leave it out";

/// The names, without dashes.
pub(super) const NAMES: &[&str] = &[
    "allow-privileged",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-config-file",
    "authentication-token-webhook-version",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "enable-bootstrap-token-auth",
    "encryption-provider-config-automatic-reload",
    "etcd-servers-overrides",
    "lease-reuse-duration-seconds",
    "runtime-config",
    "service-account-lookup",
    "service-cluster-ip-range",
    "service-node-port-range",
];
