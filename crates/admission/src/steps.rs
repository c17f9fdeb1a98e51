//! The steps of admission and the operations that each plugin takes part in.
//!
//! From the plugins of Kubernetes 1.36: a step is there if the plugin is a `MutationInterface` or `ValidationInterface`, and
//! an operation if its `admission.NewHandler` names it.

use ringwatch_registry::Operation;

/// A step of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Plugins change the object.
    Admit,
    /// Plugins refuse what it has become.
    Validate,
}

impl Step {
    /// Returns the name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// The part that a plugin takes in admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    steps: &'static [Step],
    operations: &'static [Operation],
}

impl Part {
    /// Returns the part of a plugin of kube-apiserver; all steps and operations for a name that is none.
    pub(crate) fn of(plugin: &str) -> Self {
        let found = PARTS.iter().find(|(name, ..)| *name == plugin);
        let (steps, operations) =
            found.map_or((BOTH, ALL), |(_, steps, operations)| (*steps, *operations));
        Self { steps, operations }
    }

    /// Returns true if the plugin takes part in a step of such an operation.
    pub(crate) fn has(self, step: Step, operation: Operation) -> bool {
        self.steps.contains(&step) && self.operations.contains(&operation)
    }
}

const ADMIT: &[Step] = &[Step::Admit];
const VALIDATE: &[Step] = &[Step::Validate];
const BOTH: &[Step] = &[Step::Admit, Step::Validate];

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

/// The part of each plugin of kube-apiserver.
const PARTS: [(&str, &[Step], &[Operation]); 37] = [
    ("AlwaysAdmit", BOTH, ALL),
    ("NamespaceAutoProvision", ADMIT, CREATE),
    ("NamespaceLifecycle", ADMIT, CHANGES),
    ("NamespaceExists", VALIDATE, CHANGES),
    ("LimitPodHardAntiAffinityTopology", VALIDATE, WRITES),
    ("LimitRanger", BOTH, WRITES),
    ("ServiceAccount", BOTH, WRITES),
    ("NodeRestriction", ADMIT, CHANGES),
    ("TaintNodesByCondition", ADMIT, CREATE),
    ("AlwaysPullImages", BOTH, WRITES),
    ("ImagePolicyWebhook", VALIDATE, WRITES),
    ("PodSecurity", VALIDATE, WRITES),
    ("PodNodeSelector", BOTH, CREATE),
    ("Priority", BOTH, CHANGES),
    ("DefaultTolerationSeconds", ADMIT, WRITES),
    ("PodTolerationRestriction", BOTH, WRITES),
    ("EventRateLimit", VALIDATE, WRITES),
    ("ExtendedResourceToleration", ADMIT, WRITES),
    ("DefaultStorageClass", ADMIT, CREATE),
    ("StorageObjectInUseProtection", ADMIT, CREATE),
    ("OwnerReferencesPermissionEnforcement", VALIDATE, WRITES),
    ("PersistentVolumeClaimResize", VALIDATE, UPDATE),
    ("RuntimeClass", BOTH, CREATE),
    ("CertificateApproval", VALIDATE, UPDATE),
    ("CertificateSigning", VALIDATE, UPDATE),
    ("ClusterTrustBundleAttest", VALIDATE, WRITES),
    ("CertificateSubjectRestriction", VALIDATE, CREATE),
    ("DefaultIngressClass", ADMIT, CREATE),
    ("DenyServiceExternalIPs", VALIDATE, WRITES),
    ("PodTopologyLabels", ADMIT, CREATE),
    ("NodeDeclaredFeatureValidator", VALIDATE, UPDATE),
    ("MutatingAdmissionPolicy", ADMIT, NO_DELETION),
    ("MutatingAdmissionWebhook", ADMIT, ALL),
    ("ValidatingAdmissionPolicy", VALIDATE, ALL),
    ("ValidatingAdmissionWebhook", VALIDATE, ALL),
    ("ResourceQuota", VALIDATE, WRITES),
    ("AlwaysDeny", BOTH, ALL),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_set::position;

    #[test]
    fn the_parts_are_in_the_order_of_the_plugins() {
        for (place, (name, ..)) in PARTS.iter().enumerate() {
            assert_eq!(position(name), place, "{name}");
        }
    }

    #[test]
    fn a_plugin_takes_part_in_its_steps_and_operations_alone() {
        let quota = Part::of("ResourceQuota");
        assert!(quota.has(Step::Validate, Operation::Create));
        assert!(!quota.has(Step::Admit, Operation::Create));
        assert!(!quota.has(Step::Validate, Operation::Delete));
        assert!(Part::of("Another").has(Step::Admit, Operation::Connect));
    }
}
