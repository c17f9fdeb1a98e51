//! The group `admissionregistration.k8s.io`: admission webhooks and policies.

pub(crate) mod client_config;
pub(crate) mod defaults;
mod json_path;
pub(crate) mod policy_status;
mod static_names;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::path::set;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::Value;

use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};
use crate::defaults::DefaultRule;

const V1: RowGroup = RowGroup::new("admissionregistration.k8s.io", "v1");
/// The version in which kinds are stored that are new in v1 with this release.
const V1BETA1: RowGroup = RowGroup::new("admissionregistration.k8s.io", "v1beta1");

pub(super) fn rows() -> Vec<RowBuilder> {
    let rows = vec![
        V1.cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
            .stored_in(V1BETA1)
            .strategy(
                policy(defaults::POLICY)
                    .check_on_create(validation::mutating_policy)
                    .check_on_update(validation::changed_mutating_policy)
                    .hooks(Registration::EXPRESSIONS.stored_as_new()),
            ),
        V1.cluster(
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
        )
        .stored_in(V1BETA1)
        .strategy(
            policy(defaults::POLICY_BINDING)
                .check(validation::mutating_binding)
                .hooks(Registration::PLAIN.stored_as_new()),
        ),
        V1.cluster(
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
        )
        .strategy(webhooks(defaults::MUTATING_WEBHOOKS)),
        V1.cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .status_update(SubresourceMetadata::KeepsAll, policy_status::policy_status)
                    .defaults(defaults::POLICY)
                    .generation(&["spec"])
                    .conditional_update()
                    .check_on_create(validation::validating_policy)
                    .check_on_update(validation::changed_validating_policy)
                    .hooks(Registration::EXPRESSIONS),
            ),
        V1.cluster(
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
        )
        .strategy(
            policy(defaults::POLICY_BINDING)
                .check(validation::validating_binding)
                .hooks(Registration::PLAIN),
        ),
        V1.cluster(
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        )
        .strategy(webhooks(defaults::VALIDATING_WEBHOOKS)),
    ];
    rows.into_iter()
        .map(|row| row.category("api-extensions"))
        .collect()
}

/// Returns the common strategy of policies and of their bindings.
fn policy(rules: &'static [DefaultRule]) -> Generic {
    Generic::new()
        .names_on_update()
        .defaults(rules)
        .generation(&["spec"])
        .conditional_update()
}

/// Returns the strategy of configurations of webhooks.
fn webhooks(rules: &'static [DefaultRule]) -> Generic {
    Generic::new()
        .names_on_update()
        .defaults(rules)
        .generation(&["webhooks"])
        .conditional_update()
        .check_on_create(validation::webhooks)
        .check_on_update(validation::changed_webhooks)
        .hooks(Registration::EXPRESSIONS)
}

/// The behaviour that all kinds of the group have.
#[derive(Debug)]
struct Registration {
    /// True if the kind has CEL expressions, whose checks cost more than their size tells.
    has_expressions: bool,
    /// True if the kind is stored as v1beta1, which differs from v1 in `apiVersion` alone.
    is_new: bool,
}

impl Registration {
    const PLAIN: Self = Self {
        has_expressions: false,
        is_new: false,
    };
    const EXPRESSIONS: Self = Self {
        has_expressions: true,
        is_new: false,
    };

    /// Returns the behaviour of a kind that is new in v1.
    const fn stored_as_new(self) -> Self {
        Self {
            is_new: true,
            ..self
        }
    }

    fn relabelled(&self, mut object: Value, group: RowGroup) -> Value {
        if self.is_new {
            let version = group.group_version().to_string();
            set(&mut object, "apiVersion", version.into());
        }
        object
    }
}

impl KindHooks for Registration {
    fn is_costly(&self) -> bool {
        self.has_expressions
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        static_names::warnings_about_name(object)
    }

    fn to_served(&self, object: Value) -> Value {
        self.relabelled(object, V1)
    }

    fn to_stored(&self, object: Value) -> Value {
        self.relabelled(object, V1BETA1)
    }

    fn converts(&self) -> bool {
        self.is_new
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn relabelling_goes_both_ways() {
        let new = Registration {
            is_new: true,
            ..Registration::PLAIN
        };
        let served = json!({"apiVersion": "admissionregistration.k8s.io/v1", "spec": {}});
        let stored = new.to_stored(served.clone());
        assert_eq!(stored["apiVersion"], "admissionregistration.k8s.io/v1beta1");
        assert_eq!(new.to_served(stored), served);
    }

    #[test]
    fn a_name_of_what_files_configure_is_warned_of() {
        let warnings = |name: &str| {
            let object = json!({"metadata": {"name": name}});
            Registration::PLAIN.warnings(&object, Some(&object))
        };
        assert_eq!(warnings("a.example.com"), [""; 0]);
        assert_eq!(
            warnings("a.static.k8s.io"),
            [
                "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API"
            ]
        );
    }
}
