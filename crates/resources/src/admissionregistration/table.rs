//! Tables of admission configuration: webhooks and policies.

use ringwatch_apimachinery::selector_text;

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

const UNSET: &str = "<unset>";

const PARAMETERS: Column = Column::text("ParamKind", "The kind of the policy's parameters.");

/// Table of ValidatingWebhookConfigurations and MutatingWebhookConfigurations, with the number of their webhooks.
pub(crate) static WEBHOOKS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number(
            "Webhooks",
            "Webhooks indicates the number of webhooks registered in this configuration",
        ),
        Column::AGE,
    ],
    |configuration| {
        cells![
            configuration.name(),
            configuration.count("webhooks"),
            configuration.age()
        ]
    },
);

/// Table of ValidatingAdmissionPolicies, with the number of their validations and the kind of their parameters.
pub(crate) static VALIDATING_POLICIES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Validations", "How many rules the policy has."),
        PARAMETERS,
        Column::AGE,
    ],
    |policy| {
        let rules = policy.count("spec.validations");
        cells![policy.name(), rules, parameter_kind(policy), policy.age()]
    },
);

/// Table of MutatingAdmissionPolicies, with the number of their mutations and the kind of their parameters.
pub(crate) static MUTATING_POLICIES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Mutations", "How many changes the policy makes."),
        PARAMETERS,
        Column::AGE,
    ],
    |policy| {
        let rules = policy.count("spec.mutations");
        cells![policy.name(), rules, parameter_kind(policy), policy.age()]
    },
);

/// Table of ValidatingAdmissionPolicyBindings and MutatingAdmissionPolicyBindings, with their policy and parameters.
pub(crate) static POLICY_BINDINGS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("PolicyName", "The policy that is bound."),
        Column::text("ParamRef", "The parameters with which it is bound."),
        Column::AGE,
    ],
    |binding| {
        cells![
            binding.name(),
            binding.text("spec.policyName"),
            parameters(binding),
            binding.age()
        ]
    },
);

fn parameter_kind(policy: &RowSubject<'_>) -> String {
    match policy.get("spec.paramKind").map(|it| policy.part(it)) {
        Some(kind) => format!("{}/{}", kind.text("apiVersion"), kind.text("kind")),
        None => UNSET.to_owned(),
    }
}

/// Returns the parameters of a binding: `namespace/name`, with `*` for the namespace if none is named, or a selector.
fn parameters(binding: &RowSubject<'_>) -> String {
    let name = binding.text("spec.paramRef.name");
    if name.is_empty() {
        let selector = binding.get("spec.paramRef.selector");
        let text = selector.map(selector_text::label_selector);
        return text.unwrap_or_else(|| UNSET.to_owned());
    }
    format!("{}/{name}", binding.text_or("spec.paramRef.namespace", "*"))
}
