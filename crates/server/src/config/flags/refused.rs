//! Flags of kube-apiserver that are refused, each with the reason and what to do instead.
//!
//! To ignore one of them would change what clients may do, or lose what the operator relies on.

/// A flag that is refused.
#[derive(Debug)]
pub(super) struct RefusedFlag {
    /// The name, without dashes.
    pub(super) name: &'static str,
    /// The reason, and what to do instead.
    pub(super) reason: &'static str,
}

const fn refused(name: &'static str, reason: &'static str) -> RefusedFlag {
    RefusedFlag { name, reason }
}

/// The refused flags.
pub(super) const FLAGS: &[RefusedFlag] = &[
    refused(
        "authorization-policy-file",
        "the authorization mode ABAC is not supported; write roles for the mode RBAC, or ask a webhook",
    ),
    refused(
        "egress-selector-config-file",
        "connections are always opened directly; route them in the network, or leave the flag out",
    ),
    refused(
        "service-account-signing-endpoint",
        "external signers are not supported; give the key with --service-account-signing-key-file",
    ),
];
