//! Builds the write guards: checks of the permissions that a write grants, such as RBAC escalation.

use std::sync::Arc;

use ringwatch_admission::ServedTypes;
use ringwatch_plugins::{DeviceClaims, Escalation, PolicyParameters};
use ringwatch_registry::{Resource, WriteGuard};

use super::storages::Storages;

type Guard = Arc<dyn WriteGuard>;

/// The guards. One whose storages do not exist is absent.
#[derive(Debug)]
pub(crate) struct Guards {
    escalation: Option<Guard>,
    device_claims: Option<Guard>,
    validating_policies: Option<Guard>,
    mutating_policies: Option<Guard>,
}

impl Guards {
    /// Returns the guards over these storages; `types` are the types that policies may have parameters of.
    pub(crate) fn new(storages: &Storages, types: &Arc<ServedTypes>) -> Self {
        let roles = storages.get("roles").zip(storages.get("clusterroles"));
        let escalation = roles.map(|(roles, cluster_roles)| {
            Arc::new(Escalation {
                roles,
                cluster_roles,
            }) as Guard
        });
        let policies = |prefix: &'static str| {
            storages.get(prefix).map(|policies| {
                Arc::new(PolicyParameters {
                    policies,
                    prefix,
                    types: Some(Arc::clone(types)),
                }) as Guard
            })
        };
        Self {
            escalation,
            device_claims: storages
                .get("namespaces")
                .map(|namespaces| Arc::new(DeviceClaims { namespaces }) as Guard),
            validating_policies: policies("validatingadmissionpolicies"),
            mutating_policies: policies("mutatingadmissionpolicies"),
        }
    }

    /// Returns the guard of a resource's writes, if it has one.
    pub(crate) fn get(&self, resource: &Resource) -> Option<Guard> {
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
