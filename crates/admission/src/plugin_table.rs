//! The plugins of kube-apiserver in their order: which of them run in this server, and the steps and operations that
//! each takes part in.
//!
//! From the plugins of Kubernetes 1.36: a step is there if the plugin is a `MutationInterface` or
//! `ValidationInterface`, and an operation if its `admission.NewHandler` names it.

use ringwatch_registry::Operation;

use self::Availability::{IfEnabled, No, Yes};
use super::steps::AdmissionStep;

/// The plugin on which the Node authorizer relies.
pub(crate) const NODE_RESTRICTION: &str = "NodeRestriction";

/// Availability of a plugin in this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It is here, and runs unless it is switched off.
    Yes,
    /// It is here, and runs if it is enabled.
    IfEnabled,
    /// It is not here.
    No,
}

/// A plugin of kube-apiserver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownPlugin {
    /// The name.
    pub(crate) name: &'static str,
    /// The availability in this server.
    pub(crate) availability: Availability,
    /// The steps and operations that it takes part in.
    pub(crate) handled: PluginSupport,
}

/// The steps and operations that a plugin takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PluginSupport {
    steps: &'static [AdmissionStep],
    operations: &'static [Operation],
}

impl PluginSupport {
    /// Returns the steps and operations of a plugin of kube-apiserver; all for a name that is none.
    pub(crate) fn by(plugin: &str) -> Self {
        find(plugin).map_or(EVERYTHING, |it| it.handled)
    }

    /// Returns true if the plugin takes part in a step of such an operation.
    pub(crate) fn has(self, step: AdmissionStep, operation: Operation) -> bool {
        self.steps.contains(&step) && self.operations.contains(&operation)
    }
}

/// Returns the plugin of a name; `None` if kube-apiserver has none.
pub(crate) fn find(name: &str) -> Option<&'static KnownPlugin> {
    PLUGINS.iter().find(|it| it.name == name)
}

/// Returns the position of a plugin in kube-apiserver's order; the last for a name that is not in it.
pub(crate) fn position(name: &str) -> usize {
    let found = PLUGINS.iter().position(|it| it.name == name);
    found.unwrap_or(PLUGINS.len())
}

const fn plugin(
    name: &'static str,
    availability: Availability,
    steps: &'static [AdmissionStep],
    operations: &'static [Operation],
) -> KnownPlugin {
    KnownPlugin {
        name,
        availability,
        handled: PluginSupport { steps, operations },
    }
}

const ADMIT: &[AdmissionStep] = &[AdmissionStep::Admit];
const VALIDATE: &[AdmissionStep] = &[AdmissionStep::Validate];
const BOTH: &[AdmissionStep] = &[AdmissionStep::Admit, AdmissionStep::Validate];

const CREATE: &[Operation] = &[Operation::Create];
const UPDATE: &[Operation] = &[Operation::Update];
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const CHANGES: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];
const NO_DELETION: &[Operation] = &[Operation::Create, Operation::Update, Operation::Connect];
const ALL: &[Operation] = &[
    Operation::Create,
    Operation::Update,
    Operation::Delete,
    Operation::Connect,
];

const EVERYTHING: PluginSupport = PluginSupport {
    steps: BOTH,
    operations: ALL,
};

/// The plugins in the order in which they run. NodeRestriction runs only if it is switched on, or if the Node
/// authorizer is used.
pub(crate) const PLUGINS: [KnownPlugin; 37] = [
    plugin("AlwaysAdmit", No, BOTH, ALL),
    plugin("NamespaceAutoProvision", No, ADMIT, CREATE),
    plugin("NamespaceLifecycle", Yes, ADMIT, CHANGES),
    plugin("NamespaceExists", No, VALIDATE, CHANGES),
    plugin("LimitPodHardAntiAffinityTopology", No, VALIDATE, WRITES),
    plugin("LimitRanger", Yes, BOTH, WRITES),
    plugin("ServiceAccount", Yes, BOTH, WRITES),
    plugin(NODE_RESTRICTION, IfEnabled, ADMIT, CHANGES),
    plugin("TaintNodesByCondition", Yes, ADMIT, CREATE),
    plugin("AlwaysPullImages", No, BOTH, WRITES),
    plugin("ImagePolicyWebhook", No, VALIDATE, WRITES),
    plugin("PodSecurity", Yes, VALIDATE, WRITES),
    plugin("PodNodeSelector", No, BOTH, CREATE),
    plugin("Priority", Yes, BOTH, CHANGES),
    plugin("DefaultTolerationSeconds", Yes, ADMIT, WRITES),
    plugin("PodTolerationRestriction", No, BOTH, WRITES),
    plugin("EventRateLimit", No, VALIDATE, WRITES),
    plugin("ExtendedResourceToleration", No, ADMIT, WRITES),
    plugin("DefaultStorageClass", Yes, ADMIT, CREATE),
    plugin("StorageObjectInUseProtection", Yes, ADMIT, CREATE),
    plugin("OwnerReferencesPermissionEnforcement", No, VALIDATE, WRITES),
    plugin("PersistentVolumeClaimResize", Yes, VALIDATE, UPDATE),
    plugin("RuntimeClass", Yes, BOTH, CREATE),
    plugin("CertificateApproval", Yes, VALIDATE, UPDATE),
    plugin("CertificateSigning", Yes, VALIDATE, UPDATE),
    plugin("ClusterTrustBundleAttest", No, VALIDATE, WRITES),
    plugin("CertificateSubjectRestriction", Yes, VALIDATE, CREATE),
    plugin("DefaultIngressClass", Yes, ADMIT, CREATE),
    plugin("DenyServiceExternalIPs", No, VALIDATE, WRITES),
    plugin("PodTopologyLabels", Yes, ADMIT, CREATE),
    plugin("NodeDeclaredFeatureValidator", No, VALIDATE, UPDATE),
    plugin("MutatingAdmissionPolicy", Yes, ADMIT, NO_DELETION),
    plugin("MutatingAdmissionWebhook", Yes, ADMIT, ALL),
    plugin("ValidatingAdmissionPolicy", Yes, VALIDATE, ALL),
    plugin("ValidatingAdmissionWebhook", Yes, VALIDATE, ALL),
    plugin("ResourceQuota", Yes, VALIDATE, WRITES),
    plugin("AlwaysDeny", No, BOTH, ALL),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_takes_part_in_its_steps_and_operations_alone() {
        let quota = PluginSupport::by("ResourceQuota");
        assert!(quota.has(AdmissionStep::Validate, Operation::Create));
        assert!(!quota.has(AdmissionStep::Admit, Operation::Create));
        assert!(!quota.has(AdmissionStep::Validate, Operation::Delete));
        assert!(PluginSupport::by("Another").has(AdmissionStep::Admit, Operation::Connect));
    }
}
