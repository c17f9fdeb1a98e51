//! The group `admissionregistration.k8s.io`: admission webhooks and policies.

pub(crate) mod client_config;
pub(crate) mod defaults;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_admission::{mutating_errors, validating_errors, webhook_errors};
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::set;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::Value;

use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("admissionregistration.k8s.io", "v1");
/// The version in which kinds are stored that are new in v1 with this release.
const V1BETA1: RowGroup = RowGroup::new("admissionregistration.k8s.io", "v1beta1");

pub(super) fn rows() -> Vec<RowBuilder> {
    let policy = |rules| {
        Generic::new()
            .defaults(rules)
            .generation(&["spec"])
            .conditional_update()
    };
    let webhooks = |rules| {
        Generic::new()
            .defaults(rules)
            .generation(&["webhooks"])
            .conditional_update()
            .check_on_create(validation::webhooks)
            .check_on_update(validation::changed_webhooks)
    };
    let rows = vec![
        V1.cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
            .stored_in(V1BETA1)
            .strategy(
                policy(defaults::POLICY)
                    .check(validation::mutating_policy)
                    .hooks(MutatingPolicies),
            ),
        V1.cluster(
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
        )
        .stored_in(V1BETA1)
        .strategy(
            policy(defaults::POLICY_BINDING)
                .check(validation::mutating_binding)
                .hooks(RelabelledKind),
        ),
        V1.cluster(
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
        )
        .strategy(webhooks(defaults::MUTATING_WEBHOOKS).hooks(ExpressionKind(webhook_errors))),
        V1.cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
            .status()
            .strategy(
                Generic::with_status()
                    .status_update(SubresourceMetadata::KeepsAll, validation::policy_status)
                    .defaults(defaults::POLICY)
                    .generation(&["spec"])
                    .conditional_update()
                    .check(validation::policy)
                    .hooks(ExpressionKind(validating_errors)),
            ),
        V1.cluster(
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
        )
        .strategy(policy(defaults::POLICY_BINDING).check(validation::validating_binding)),
        V1.cluster(
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        )
        .strategy(webhooks(defaults::VALIDATING_WEBHOOKS).hooks(ExpressionKind(webhook_errors))),
    ];
    rows.into_iter()
        .map(|row| row.category("api-extensions"))
        .collect()
}

/// A check of an object, with the old one if it is an update. It returns the errors of the fields.
type RegistrationCheck = fn(&Value, Option<&Value>) -> Vec<FieldError>;

/// The behaviour of kinds with CEL expressions. An expression that the old object has is not judged again in an update.
#[derive(Debug)]
pub(crate) struct ExpressionKind(pub RegistrationCheck);

impl KindHooks for ExpressionKind {
    fn is_costly(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.0(object, None)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.0(object, Some(old))
    }
}

/// The behaviour of MutatingAdmissionPolicies, which have expressions and are stored as v1beta1.
#[derive(Debug)]
struct MutatingPolicies;

impl KindHooks for MutatingPolicies {
    fn is_costly(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        mutating_errors(object, None)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        mutating_errors(object, Some(old))
    }

    fn to_served(&self, object: Value) -> Value {
        RelabelledKind.to_served(object)
    }

    fn to_stored(&self, object: Value) -> Value {
        RelabelledKind.to_stored(object)
    }

    fn converts(&self) -> bool {
        true
    }
}

/// The behaviour of kinds that are stored as v1beta1, which differs from v1 in `apiVersion` alone.
#[derive(Debug)]
struct RelabelledKind;

impl KindHooks for RelabelledKind {
    fn to_served(&self, mut object: Value) -> Value {
        set(
            &mut object,
            "apiVersion",
            V1.group_version().to_string().into(),
        );
        object
    }

    fn to_stored(&self, mut object: Value) -> Value {
        set(
            &mut object,
            "apiVersion",
            V1BETA1.group_version().to_string().into(),
        );
        object
    }

    fn converts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn relabelling_goes_both_ways() {
        let served = json!({"apiVersion": "admissionregistration.k8s.io/v1", "spec": {}});
        let stored = RelabelledKind.to_stored(served.clone());
        assert_eq!(stored["apiVersion"], "admissionregistration.k8s.io/v1beta1");
        assert_eq!(RelabelledKind.to_served(stored), served);
    }
}
