//! Which writes are checked for what they give to somebody, and over which storages.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwatch::storage::Interface;
use ringwatch_admission::ServedTypes;
use ringwatch_plugins::{DeviceClaims, Escalation, PolicyParameters};
use ringwatch_registry::{Resource, WriteGuard};

type Guard = Arc<dyn WriteGuard>;

/// The storages of built-in resources, by the prefix of their keys.
type ByPrefix = BTreeMap<String, Arc<dyn Interface>>;

/// The checks, each over the storages that it looks into. One whose storages are not there checks nothing.
#[derive(Debug)]
pub(super) struct Guards {
    escalation: Option<Guard>,
    device_claims: Option<Guard>,
    validating_policies: Option<Guard>,
    mutating_policies: Option<Guard>,
}

impl Guards {
    pub(super) fn new(by_prefix: &ByPrefix, types: Option<&Arc<ServedTypes>>) -> Self {
        let storage = |prefix: &str| by_prefix.get(prefix).cloned();
        let roles = storage("roles").zip(storage("clusterroles"));
        let escalation = roles.map(|(roles, cluster_roles)| {
            Arc::new(Escalation {
                roles,
                cluster_roles,
            }) as Guard
        });
        let policies = |prefix: &'static str| {
            storage(prefix).map(|policies| {
                Arc::new(PolicyParameters {
                    policies,
                    prefix,
                    types: types.cloned(),
                }) as Guard
            })
        };
        Self {
            escalation,
            device_claims: storage("namespaces")
                .map(|namespaces| Arc::new(DeviceClaims { namespaces }) as Guard),
            validating_policies: policies("validatingadmissionpolicies"),
            mutating_policies: policies("mutatingadmissionpolicies"),
        }
    }

    /// The check of a resource's writes.
    pub(super) fn of(&self, resource: &Resource) -> Option<Guard> {
        let guard = match (
            resource.group_version.group.as_str(),
            resource.plural.as_str(),
        ) {
            ("rbac.authorization.k8s.io", _) => &self.escalation,
            ("resource.k8s.io", "resourceclaims" | "resourceclaimtemplates") => &self.device_claims,
            (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies" | "validatingadmissionpolicybindings",
            ) => &self.validating_policies,
            (
                "admissionregistration.k8s.io",
                "mutatingadmissionpolicies" | "mutatingadmissionpolicybindings",
            ) => &self.mutating_policies,
            _ => &None,
        };
        guard.clone()
    }
}
