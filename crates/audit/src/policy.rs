//! The audit policy: `audit.k8s.io/v1` Policy, read from the file of `--audit-policy-file`.

mod file;
mod matching;
mod read;
#[cfg(test)]
mod tests;
mod validation;

use ringwatch_authorization::Attributes;

use crate::level::{Level, Stages};

pub use read::PolicyError;

/// An audit policy: rules, of which the first that matches a request decides.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<PolicyRule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

/// The decision of a policy about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditDecision {
    /// The amount of the request that is recorded.
    pub level: Level,
    /// The stages without an event.
    pub omit_stages: Stages,
    /// True if objects are recorded without their managed fields.
    pub omit_managed_fields: bool,
}

/// A rule of a policy. Empty lists match everything.
#[derive(Clone, Debug, Default)]
struct PolicyRule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    omit_stages: Stages,
    /// The policy's own setting if unset.
    omit_managed_fields: Option<bool>,
}

/// Resources of a group, perhaps of certain names.
#[derive(Clone, Debug, Default)]
struct GroupResources {
    /// The API group; empty for the core, `*` for all.
    group: String,
    /// Resources and subresources: `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
    resources: Vec<String>,
    names: Vec<String>,
}

impl Policy {
    /// Decides about a request, as `EvaluatePolicyRule` of Kubernetes 1.36 does.
    #[must_use]
    pub fn evaluate(&self, attributes: &Attributes<'_>) -> AuditDecision {
        let rule = self.rules.iter().find(|rule| rule.matches(attributes));
        let own = rule.and_then(|rule| rule.omit_managed_fields);
        AuditDecision {
            level: rule.map_or(Level::None, |rule| rule.level),
            omit_stages: rule.map_or(self.omit_stages, |rule| {
                rule.omit_stages.union(self.omit_stages)
            }),
            omit_managed_fields: own.unwrap_or(self.omit_managed_fields),
        }
    }
}
